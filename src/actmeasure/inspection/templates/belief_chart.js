// The belief over time as stacked areas, and the time of the inspection.

const MOST_BANDS = 7;

/** Draw the beliefs of a row's plan; return the belief at its end in words. */
function drawBeliefs(place, data, row, plan) {
  const beliefs = follow(data.moves, plan, firstBelief(data.moves, row));
  const found = bands(data.moves, beliefs, MOST_BANDS);
  const { picture, width, height } = canvas(place, 290, `What is believed after seeing ${row.name}, period by period`);
  const legend = legendRows(found, width);
  const frame = { left: 46, right: width - 12, top: 30, bottom: height - 44 - 20 * legend.rows };
  const last = beliefs.length - 1;
  const x = scale(0, last, frame.left, frame.right);
  const y = scale(0, 1, frame.bottom, frame.top);
  const patterns = fills(picture, found);
  axes(picture, frame, x, y, ticks(0, last, Math.min(last, width / 60)).filter(Number.isInteger), [], `${data.units.period}s from now`, 'probability');
  drawBands(picture, found, patterns, x, y, plan.then === 'measure' ? plan.actions.length : last);
  for (const share of [0, 0.5, 1]) {
    picture.append(svg('text', { x: frame.left - 6, y: y(share) + 4, 'text-anchor': 'end', class: 'soft' }, percent(share)));
  }
  drawEnd(picture, plan, frame, x);
  drawLegend(picture, found, patterns, legend, height);
  return endWords(found, plan, data.units);
}

/** The step at which a band is highest, with a margin to the edges and to the end of the plan; or none. */
function widest(values, x, end, room) {
  let best = null;
  for (let step = 0; step <= end; step += 1) {
    const fits = x(step) - room > x(0) && x(step) + room < x(end);
    if (fits && (best === null || values[step] > values[best])) best = step;
  }
  return best !== null && values[best] > 0.16 ? best : null;
}

function drawBands(picture, found, patterns, x, y, end) {
  const count = found[0].values.length;
  const below = new Array(count).fill(0);
  found.forEach((band, n) => {
    const top = below.map((value, step) => value + band.values[step]);
    const up = top.map((value, step) => [x(step), y(value)]);
    const down = below.map((value, step) => [x(step), y(value)]).reverse();
    picture.append(svg('path', { d: line(up.concat(down)) + 'Z', fill: patterns[n], stroke: '#fff', 'stroke-width': 1 },
      svg('title', {}, band.name)));
    const name = short(band.name, 16);
    const best = widest(band.values, x, end, 6 + 3.5 * name.length);
    if (best !== null) {
      picture.append(svg('text', { x: x(best), y: y(below[best] + band.values[best] / 2) + 4, 'text-anchor': 'middle', class: 'halo' }, name));
    }
    top.forEach((value, step) => { below[step] = value; });
  });
}

const short = (name, most) => (name.length > most ? name.slice(0, most - 1) + '…' : name);

/** Mark the end of the plan: a line, a label, and a half-transparent area over later steps. */
function drawEnd(picture, plan, frame, x) {
  const words = { measure: 'inspect', known: 'known', end: 'over' }[plan.then];
  if (!words) return;
  const at = x(plan.actions.length);
  if (plan.then === 'measure') {
    picture.append(svg('rect', { x: at, y: frame.top, width: frame.right - at, height: frame.bottom - frame.top, fill: '#fff', 'fill-opacity': 0.62 }),
      svg('text', { x: frame.right, y: frame.top - 6, 'text-anchor': 'end', class: 'soft' }, frame.right - at > 150 ? 'without an inspection' : ''));
  }
  picture.append(
    svg('line', { x1: at, x2: at, y1: frame.top - 14, y2: frame.bottom, stroke: '#1c2a31', 'stroke-width': 2.5, id: 'look-line', 'data-step': plan.actions.length }),
    svg('text', { x: at, y: frame.top - 17, 'text-anchor': at > frame.right - 30 ? 'end' : 'middle', 'font-weight': 700 }, words),
  );
}

/** Positions of the names of the legend, as many in a row as fit. */
function legendRows(found, width) {
  let left = 0;
  let rows = 1;
  const places = found.map((band) => {
    const room = 36 + 7 * short(band.name, 24).length;
    if (left > 0 && left + room > width) { rows += 1; left = 0; }
    const place = { left, row: rows - 1 };
    left += room;
    return place;
  });
  return { rows, places };
}

function drawLegend(picture, found, patterns, legend, height) {
  found.forEach((band, n) => {
    const { left, row } = legend.places[n];
    const top = height - 20 * (legend.rows - row) + 4;
    picture.append(
      svg('rect', { x: left, y: top, width: 16, height: 12, fill: patterns[n], stroke: '#1c2a31', 'stroke-width': 0.7 }),
      svg('text', { x: left + 21, y: top + 10 }, short(band.name, 24)),
    );
  });
}

/** The belief at the end of the plan in words, the likeliest state first. */
function endWords(found, plan, units) {
  if (plan.then === 'repeat') return 'The plan goes on without an inspection; drawn is its beginning.';
  const at = plan.actions.length;
  const likely = found.map((band) => [band.name, band.values[at]]).filter(([, share]) => share > 1e-9).sort((a, b) => b[1] - a[1]);
  const words = likely.map(([name, share]) => `${name} ${percent(share)}`).join(', ');
  return `After ${periods(at, units)}: ${words}.`;
}
