// The page of a plan that is a policy graph: a walk through its steps, and the risk and cost of policies over time.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
// Outcomes of smaller probability are not offered, and more of them than this are a list.
const IMPOSSIBLE = 1e-12;
const MOST_BUTTONS = 12;
// Periods that are drawn of a step that goes on without end.
const ENDLESS = 30;
// What was reported so far: [{step, outcome}], and the number of the start.
const walk = { begin: 0, reports: [] };

/** An HTML element with properties and children; text is never parsed as markup. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Beliefs: maps from states to probabilities, given that the unit still runs.

function normalised(belief) {
  let total = 0;
  for (const weight of belief.values()) total += weight;
  for (const [state, weight] of belief) belief.set(state, weight / total);
  return belief;
}

function moved(belief, action) {
  const after = new Map();
  for (const [state, weight] of belief) {
    const [successors, chances] = data.beliefs.rows[action][state];
    successors.forEach((one, n) => after.set(one, (after.get(one) || 0) + weight * chances[n]));
  }
  return normalised(after);
}

/** The probability of each outcome, a map, after an action led to a belief. */
function outcomesOf(belief, measurement, action) {
  const law = data.beliefs.laws[measurement];
  const found = new Map();
  for (const [state, weight] of belief) {
    const [outcomes, chances] = law === 'exact' ? [[state], [1]] : law[law.length > 1 ? action : 0][state];
    outcomes.forEach((outcome, n) => found.set(outcome, (found.get(outcome) || 0) + weight * chances[n]));
  }
  return found;
}

function conditioned(belief, measurement, action, outcome) {
  const law = data.beliefs.laws[measurement];
  const after = new Map();
  for (const [state, weight] of belief) {
    const [outcomes, chances] = law === 'exact' ? [[state], [1]] : law[law.length > 1 ? action : 0][state];
    const place = outcomes.indexOf(outcome);
    if (place >= 0 && chances[place] > 0) after.set(state, weight * chances[place]);
  }
  return normalised(after);
}

const failedShare = (belief) => data.beliefs.failed.reduce((sum, state) => sum + (belief.get(state) || 0), 0);

// The walk

/** Periods of a step from a time on: until its inspection, or the end of life. */
function lengthOf(step, time) {
  const left = data.life === null ? Infinity : data.life - time;
  const own = step.then === 'repeat' ? (data.life === null ? ENDLESS : left) : step.actions.length;
  return Math.min(own, left);
}

/** Everything along the walk: points of time with beliefs, what was reported, and the present step with its outcomes. */
function along() {
  const begin = data.begin[walk.begin];
  const [states, chances] = begin.belief;
  let belief = data.beliefs && new Map(states.map((state, n) => [state, chances[n]]));
  let number = begin.step;
  let time = 0;
  const points = belief ? [{ time, belief }] : [];
  const marks = [];
  const trail = [];
  for (let n = 0; ; n += 1) {
    const step = data.steps[number];
    const length = lengthOf(step, time);
    const isCut = length < step.actions.length || step.then !== 'measure';
    for (let period = 0; period < length; period += 1) {
      if (belief) {
        belief = moved(belief, actionAt(step, period));
        points.push({ time: time + period + 1, belief });
      }
    }
    time += length;
    const isOver = isCut || (data.life !== null && time >= data.life) || (belief && belief.size === 0);
    const last = actionAt(step, length - 1);
    if (isOver || n >= walk.reports.length) return { number, step, begun: time - length, time, belief, last, isOver, points, marks, trail };
    const outcome = walk.reports[n];
    const shows = data.measurements[step.measurement];
    const name = shows ? shows.outcomes[outcome] : '';
    if (belief && shows) {
      belief = conditioned(belief, step.measurement, last, outcome);
      points.push({ time, belief });
    }
    marks.push({ time, name: shows ? name : '' });
    trail.push(`${when(time)}: ${step.words}${shows ? ` reported ${name}` : ''}`);
    number = targetOf(step, outcome);
  }
}

const targetOf = (step, outcome) => (step.targets[outcome] !== undefined ? step.targets[outcome] : step.targets['']);
const when = (time) => (time === 0 ? 'Now' : `After ${periods(time, data.units)}`);

/** What is done in the first periods of a step: "nothing for 3 years, repair". */
function doneWords(step, length) {
  const runs = [];
  for (let period = 0; period < length; period += 1) {
    const name = data.actions[actionAt(step, period)];
    if (runs.length && runs[runs.length - 1].name === name) runs[runs.length - 1].count += 1;
    else runs.push({ name, count: 1 });
  }
  return runs.map(({ name, count }) => (count === 1 ? name : `${name} for ${periods(count, data.units)}`)).join(', ');
}

/** The present step in words; one that the end of life cuts short without its inspection. */
function answerWords(now) {
  const length = now.time - now.begun;
  const isCut = data.life !== null && now.step.then === 'measure' && length < now.step.actions.length;
  return isCut ? `${doneWords(now.step, length)}; life is then over, without the inspection of this step` : now.step.words;
}

function show() {
  const now = along();
  const answer = answerWords(now);
  byId('where').textContent = `${when(now.begun)}, step ${now.number + 1} of ${data.steps.length}`;
  byId('answer').textContent = `${answer.charAt(0).toUpperCase()}${answer.slice(1)}.`;
  const more = [];
  if (now.belief && data.beliefs.knowsFailures) more.push(`${when(now.time)}, believed to have failed: ${risk(failedShare(now.belief))}.`);
  if (now.isOver) more.push(data.life === null ? 'The plan goes on like this.' : 'This is the last step before the end of life.');
  byId('answer-more').textContent = more.join(' ');
  showReports(now);
  byId('back').disabled = walk.reports.length === 0;
  byId('again').disabled = walk.reports.length === 0;
  byId('trail').replaceChildren(...now.trail.map((text) => element('li', { textContent: text })));
  for (const row of byId('step-table').tBodies[0].rows) row.classList.toggle('chosen', row.id === `step-${now.number + 1}`);
  if (now.belief) byId('beliefs-words').textContent = drawWalk(byId('beliefs'), now);
  else byId('beliefs-words').textContent = 'This model is too large to draw beliefs on a page.';
}

/** A small probability with two digits, others in percent. */
const risk = (share) => (share > 0 && share < 0.01 ? Number(share.toPrecision(2)).toString() : percent(share));

function showReports(now) {
  const place = byId('reports');
  place.hidden = now.isOver;
  if (now.isOver) return;
  const shows = data.measurements[now.step.measurement];
  if (!shows) {
    byId('reports-title').textContent = 'Then the plan goes on.';
    byId('report-buttons').replaceChildren(reportButton('Go on', '', ''));
    return;
  }
  byId('reports-title').textContent = `What does ${shows.name} report?`;
  const chances = now.belief ? outcomesOf(now.belief, now.step.measurement, now.last) : null;
  const possible = shows.outcomes.map((name, outcome) => [name, outcome, chances ? chances.get(outcome) || 0 : null])
    .filter(([, outcome, chance]) => (chance === null || chance > IMPOSSIBLE) && targetOf(now.step, outcome) !== undefined);
  if (possible.length <= MOST_BUTTONS) {
    byId('report-buttons').replaceChildren(...possible.map(([name, outcome, chance]) => reportButton(name, outcome, chance === null ? '' : percent(chance))));
    return;
  }
  const select = element('select', { id: 'report-list' }, ...possible.map(([name, outcome, chance]) => element('option', { value: outcome, textContent: chance === null ? name : `${name} (${percent(chance)})` })));
  select.setAttribute('aria-labelledby', 'reports-title');
  const button = element('button', { type: 'button', textContent: 'Report this' });
  button.addEventListener('click', () => report(Number(select.value)));
  byId('report-buttons').replaceChildren(select, button);
}

function reportButton(name, outcome, chance) {
  const button = element('button', { type: 'button' }, name, ...(chance ? [' ', element('span', { className: 'share', textContent: chance })] : []));
  button.addEventListener('click', () => report(outcome));
  return button;
}

function report(outcome) {
  walk.reports.push(outcome);
  show();
  const first = byId('report-buttons').querySelector('button, select');
  (byId('reports').hidden || !first ? byId('again') : first).focus();
}

function makeBegin() {
  if (data.begin.length < 2) return;
  const select = element('select', { id: 'begin' }, ...data.begin.map((one, n) => element('option', { value: n, textContent: one.name })));
  select.addEventListener('change', () => { walk.begin = Number(select.value); walk.reports = []; show(); });
  byId('begin-chooser').append(element('label', { className: 'select', htmlFor: 'begin', textContent: 'The first inspection showed' }), select);
}

// The belief over time, with what was reported

function drawWalk(place, now) {
  const { names, groups } = data.beliefs;
  const beliefs = now.points.map(({ belief }) => {
    const grouped = new Map();
    for (const [state, weight] of belief) grouped.set(groups[state], (grouped.get(groups[state]) || 0) + weight);
    return grouped;
  });
  const kept = new Set(data.beliefs.failed.map((state) => groups[state]));
  const found = bands({ names, kept }, beliefs, MOST_BANDS).filter((band) => band.kind !== 'over');
  const { picture, width, height } = canvas(place, 300, 'What is believed over time, along what was reported');
  const legend = legendRows(found, width);
  const frame = { left: 46, right: width - 12, top: 46, bottom: height - 44 - 20 * legend.rows };
  const last = Math.max(1, now.time);
  const at = scale(0, last, frame.left, frame.right);
  const y = scale(0, 1, frame.bottom, frame.top);
  const patterns = fills(picture, found);
  axes(picture, frame, at, y, ticks(0, last, Math.min(last, width / 60)).filter(Number.isInteger), [], `${data.units.period}s from now`, 'probability');
  drawBands(picture, found, patterns, (n) => at(now.points[n].time), y, 0); // names are in the legend alone
  for (const share of [0, 0.5, 1]) picture.append(svg('text', { x: frame.left - 6, y: y(share) + 4, 'text-anchor': 'end', class: 'soft' }, percent(share)));
  let right = -Infinity;
  let isLow = false;
  now.marks.forEach(({ time, name }, n) => {
    const words = short(name, 18);
    isLow = at(time) - 3.5 * words.length < right && !isLow;
    right = at(time) + 3.5 * words.length;
    picture.append(
      svg('line', { x1: at(time), x2: at(time), y1: frame.top - 6, y2: frame.bottom, stroke: '#1c2a31', 'stroke-width': 2, class: 'report-line', 'data-report': n }),
      svg('text', { x: Math.min(Math.max(at(time), frame.left + 3 * words.length), frame.right - 3 * words.length), y: frame.top - (isLow ? 10 : 24), 'text-anchor': 'middle', class: 'halo' }, words),
    );
  });
  drawLegend(picture, found, patterns, legend, height);
  const likely = found.map((band) => [band.name, band.values[band.values.length - 1]]).filter(([, share]) => share > 1e-9).sort((a, b) => b[1] - a[1]);
  return `${when(now.time)}: ${likely.map(([name, share]) => `${name} ${percent(share)}`).join(', ')}.`;
}

// Risk and cost over time

function drawCurves() {
  const chosen = byId('other') ? Number(byId('other').value) : 0;
  const shown = chosen > 0 ? [data.curves[0], data.curves[chosen]] : [data.curves[0]];
  if (byId('risk-chart')) drawCurve(byId('risk-chart'), shown.map((one) => one.risk), 'risk');
  drawCurve(byId('cost-chart'), shown.map((one) => one.cost.map((value) => data.units.sign * value)), data.units.figure);
  byId('curve-words').textContent = chosen > 0 ? `The line is the plan, the dashed one: ${shown[1].name}.` : 'The line is the plan.';
}

function drawCurve(place, curves, label) {
  const known = curves.filter((one) => one);
  const { picture, width, height } = canvas(place, 220, `${label} over time`);
  if (!known.length) return;
  const frame = { left: 62, right: width - 12, top: 18, bottom: height - 40 };
  const last = known[0].length;
  const [low, high] = [Math.min(0, ...known.flat()), Math.max(0, ...known.flat())];
  const x = scale(1, Math.max(2, last), frame.left, frame.right);
  const y = scale(low, high || 1, frame.bottom, frame.top);
  axes(picture, frame, x, y, ticks(1, last, Math.min(last, width / 60)).filter(Number.isInteger), ticks(low, high || 1, 4), data.units.period, '');
  curves.forEach((values, n) => {
    if (!values) return;
    picture.append(svg('path', { d: line(values.map((value, k) => [x(k + 1), y(value)])), fill: 'none', stroke: n ? '#8e3b2f' : '#0b6e6e', 'stroke-width': n ? 1.6 : 2.4, 'stroke-dasharray': n ? '5 4' : 'none', class: 'curve' }));
  });
}

function makeOther() {
  if (data.curves.length < 2) return;
  const select = element('select', { id: 'other' }, ...data.curves.map((one, n) => element('option', { value: n, textContent: n ? one.name : 'nothing else' })));
  select.value = 1;
  select.addEventListener('change', drawCurves);
  byId('other-chooser').append(element('label', { className: 'select', htmlFor: 'other', textContent: 'Compare with' }), select);
}

function begin() {
  for (const part of document.querySelectorAll('.interactive')) part.hidden = false;
  for (const bar of document.querySelectorAll('.bar')) bar.style.width = `${bar.dataset.width}%`;
  makeBegin();
  makeOther();
  byId('back').addEventListener('click', () => { walk.reports.pop(); show(); });
  byId('again').addEventListener('click', () => { walk.reports = []; show(); });
  const draw = () => { show(); drawCurves(); };
  draw();
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (window.innerWidth !== width) { width = window.innerWidth; draw(); }
  });
}

begin();
