// The page: the chosen state and price, and the parts that depend on them.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const SLIDER = 1000;
const MOST_CHIPS = 16;
const chosen = { row: 0, price: data.price };

// A square scale: schedules change more often at low prices.
const priceOf = (position) => data.mostPrice * (position / SLIDER) ** 2;
const positionOf = (price) => Math.round(SLIDER * Math.sqrt(price / data.mostPrice));
const priceText = (price) => (data.onePrice ? amount(price, data.units) : `${plainNumber(price)} times the present costs`);

/** An HTML element with properties and children; text is never parsed as markup. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function makeChips() {
  const chips = data.rows.map((row, n) => {
    const button = element('input', { type: 'radio', name: 'state', value: n, checked: n === chosen.row });
    button.addEventListener('change', () => choose(n));
    return element('label', { className: row.expected ? '' : 'unexpected' }, button, row.name);
  });
  const group = element('div', { className: 'chips' }, ...chips);
  byId('chooser').append(element('fieldset', {}, element('legend', { textContent: 'The last inspection showed' }), group));
}

function makeSelect() {
  const select = element('select', { id: 'state' });
  const options = (isExpected) => data.rows.flatMap((row, n) => (row.expected === isExpected ? [element('option', { value: n, textContent: row.name })] : []));
  for (const [label, found] of [['expected', options(true)], ['not expected, with this plan', options(false)]]) {
    if (found.length) select.append(element('optgroup', { label }, ...found));
  }
  select.addEventListener('change', () => choose(Number(select.value)));
  byId('chooser').append(element('label', { className: 'select', htmlFor: 'state', textContent: 'The last inspection showed' }), select);
}

function choose(row) {
  chosen.row = row;
  showPlan();
  markRow();
}

function setPrice(price, position = positionOf(price)) {
  chosen.price = Math.min(Math.max(price, 0), data.mostPrice);
  byId('price').value = position;
  showPrice();
  showPlan();
  showPolicies();
  showSchedule();
}

const piece = () => data.pieces[pieceAt(data, chosen.price)];
const isNow = () => chosen.price === data.price;

function showPlan() {
  const row = data.rows[chosen.row];
  const plan = data.plans[piece().plans[chosen.row]];
  const seen = row.state === null ? 'At the start' : `After seeing ${row.name}`;
  if (!plan) {
    byId('answer').textContent = `${seen}: at this price the schedule never leads to it.`;
    byId('answer-more').textContent = '';
    byId('beliefs').replaceChildren();
    byId('beliefs-words').textContent = '';
    return;
  }
  byId('answer').textContent = `${seen}: ${plan.words}.`;
  byId('answer-more').textContent = planRemarks(row).join(' ');
  byId('beliefs-words').textContent = row.drawn ? drawBeliefs(byId('beliefs'), data, row, plan) : 'This model is too large to draw the beliefs along this plan.';
  if (!row.drawn) byId('beliefs').replaceChildren();
}

function planRemarks(row) {
  const [reward, looks] = [piece().rewards[chosen.row], piece().rowLooks[chosen.row]];
  const found = [];
  if (reward !== null) found.push(`The ${data.units.figure} from here on is ${money(reward - chosen.price * looks, data.units)}.`);
  if (isNow() && row.gain > 0) found.push(`Inspecting then is worth ${amount(row.gain, data.units)} more than inspecting a ${data.units.period} later.`);
  if (isNow() && row.samePlan !== undefined) found.push(`${percent(row.samePlan)} of the resampled models say the same, and ${percent(row.sameAction)} begin with the same action.`);
  if (!piece().expected[chosen.row] && data.pieces.length > 1) found.push(`This is not expected with this schedule; its plan is the best at a price of ${priceText(piece().inside)}.`);
  return found;
}

function showPrice() {
  const number = pieceAt(data, chosen.price);
  const { low, high, looks, looksPerPeriod, looksInAll } = piece();
  byId('price-shown').textContent = priceText(chosen.price) + (isNow() ? ' (now)' : '');
  byId('price').setAttribute('aria-valuetext', priceText(chosen.price));
  const span = high === null ? `from ${priceText(low)} up` : `from ${priceText(low)} to ${priceText(high)}`;
  const often = looksPerPeriod === null ? `${plainNumber(looksInAll)} inspections in all` : looksPerPeriod > 0 ? `an inspection every ${about(1 / looksPerPeriod, data.units)}` : 'no inspections in the long run';
  byId('price-words').textContent = `Schedule ${number + 1} of ${data.pieces.length} is the best ${span}: ${often}${looks > 0 && data.onePrice ? `, ${plainNumber(looks)} discounted` : ''}.`;
  byId('earlier').disabled = number === 0;
  byId('later').disabled = number === data.pieces.length - 1;
  drawValues(byId('value-chart'), data, chosen.price);
  drawFrontier(byId('frontier-chart'), data, number);
}

/** Set a price of the previous or next schedule; the own price if that is in its range. */
function step(by) {
  const next = data.pieces[pieceAt(data, chosen.price) + by];
  setPrice(next.low <= data.price && (next.high === null || data.price <= next.high) ? data.price : Math.min(next.inside, data.mostPrice));
}

function showPolicies() {
  const best = worth(piece(), chosen.price);
  const values = data.policies.map((policy, n) => (n === 0 ? best : policy.reward === null ? null : policy.reward - chosen.price * policy.looks));
  const most = Math.max(...values.filter((value) => value !== null).map(Math.abs)) || 1;
  [...byId('policies').tBodies[0].rows].forEach((row, n) => {
    const value = values[n];
    row.querySelector('.bar').style.width = `${value === null ? 100 : (100 * Math.abs(value)) / most}%`;
    row.cells[1].textContent = money(value, data.units);
    row.cells[2].textContent = value === null ? 'infinite' : amount(lost(best, value), data.units);
    const policy = data.policies[n];
    const [average, cost] = n === 0 ? [piece().average, piece().averageCost] : [policy.average, policy.averageCost];
    if (row.cells.length > 4) row.cells[3].textContent = average === null ? '' : money(average - chosen.price * cost, data.units);
    const looks = n === 0 ? piece() : policy;
    row.querySelector('.looks').textContent = looks.looksPerPeriod !== null ? plainNumber(looks.looksPerPeriod) : looks.looksInAll !== null ? `${plainNumber(looks.looksInAll)}${row.cells.length > 4 ? ' in all' : ''}` : '';
  });
  const others = isNow() ? '' : ` The others are the best of their kind at the present price, ${data.priceWords}, and are not chosen anew.`;
  byId('compare-words').textContent = `At a price of ${isNow() ? data.priceWords : priceText(chosen.price)}.${others}`;
}

function showSchedule() {
  const now = piece();
  [...byId('schedule').tBodies[0].rows].forEach((row, n) => {
    const plan = data.plans[now.plans[n]];
    row.cells[1].textContent = plan ? plan.words : 'never seen at this price';
    row.cells[2].textContent = plan && plan.then === 'measure' ? String(plan.actions.length) : '';
    row.cells[3].textContent = plan && now.rewards[n] !== null ? money(now.rewards[n] - chosen.price * now.rowLooks[n], data.units) : '';
    row.classList.toggle('unexpected', !now.expected[n]);
  });
  byId('all-words').textContent = `At a price of ${isNow() ? data.priceWords : priceText(chosen.price)}.`;
  for (const cell of document.querySelectorAll('.now-only')) cell.hidden = !isNow();
}

function markRow() {
  [...byId('schedule').tBodies[0].rows].forEach((row, n) => row.classList.toggle('chosen', n === chosen.row));
}

function begin() {
  const first = data.rows.findIndex((row) => row.isFirst);
  chosen.row = Math.max(0, first);
  for (const part of document.querySelectorAll('.interactive')) part.hidden = part.id === 'prices' && data.pieces.length < 2;
  if (data.rows.length <= MOST_CHIPS) makeChips(); else makeSelect();
  if (byId('state')) byId('state').value = chosen.row;
  byId('price').addEventListener('input', (event) => setPrice(priceOf(event.target.value), event.target.value));
  byId('now').addEventListener('click', () => setPrice(data.price));
  byId('earlier').addEventListener('click', () => step(-1));
  byId('later').addEventListener('click', () => step(1));
  setPrice(data.price);
  markRow();
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth !== width) { width = window.innerWidth; setPrice(chosen.price); }
  });
}

begin();
