// Charts of the price of an inspection: the best value at every price, and the frontier of inspections against other costs.

const CHART_HEIGHT = 250;

/** The value of a schedule at a price: linear in the price. */
const worth = (piece, price) => piece.reward - price * piece.looks;

/** The number of the schedule that is the best at a price. */
function pieceAt(data, price) {
  const found = data.pieces.findIndex((piece) => piece.high === null || price <= piece.high);
  return found < 0 ? data.pieces.length - 1 : found;
}

/** The bound on the optimum at a price: interpolated between the prices that were solved, as the optimum is convex. */
function boundAt(data, price) {
  const [prices, uppers] = data.bound;
  const after = prices.findIndex((one) => one >= price);
  if (after < 0) return uppers[uppers.length - 1];
  if (after === 0) return uppers[0];
  const share = (price - prices[after - 1]) / (prices[after] - prices[after - 1]);
  return uppers[after - 1] + share * (uppers[after] - uppers[after - 1]);
}

function drawValues(place, data, price) {
  const { picture, width, height } = canvas(place, CHART_HEIGHT, `${data.units.figure} against the price of an inspection`);
  const frame = { left: 56, right: width - 12, top: 24, bottom: height - 40 };
  const { sign } = data.units;
  const corners = [0, ...data.pieces.map((piece) => piece.low).filter((one) => one > 0 && one < data.mostPrice), data.mostPrice];
  const values = corners.map((one) => [one, sign * worth(data.pieces[pieceAt(data, one)], one)]);
  const heights = values.map(([, value]) => value);
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const x = scale(0, data.mostPrice, frame.left, frame.right);
  const y = scale(low - 0.08 * (high - low), high + 0.08 * (high - low), frame.bottom, frame.top);
  axes(picture, frame, x, y, ticks(0, data.mostPrice, width / 90), ticks(low, high, 4), data.onePrice ? 'price of an inspection' : 'factor on the present costs', `${data.units.figure} ${data.units.currency}`);
  const solved = data.bound[0].filter((one) => one < data.mostPrice).concat([data.mostPrice]);
  picture.append(
    svg('path', { d: line(solved.map((one) => [x(one), y(sign * boundAt(data, one))])), fill: 'none', stroke: '#5a6a72', 'stroke-dasharray': '4 3' },
      svg('title', {}, 'bound on all schedules')),
    svg('path', { d: line(values.map(([one, value]) => [x(one), y(value)])), fill: 'none', stroke: '#1c2a31', 'stroke-width': 2 }),
  );
  for (const [one, value] of values.slice(1, -1)) picture.append(svg('circle', { cx: x(one), cy: y(value), r: 2.2, fill: '#1c2a31' }));
  const at = worth(data.pieces[pieceAt(data, price)], price);
  picture.append(
    svg('line', { x1: x(data.price), x2: x(data.price), y1: frame.top, y2: frame.bottom, stroke: '#5a6a72', 'stroke-dasharray': '1 3' }, svg('title', {}, 'present price')),
    svg('circle', { id: 'value-marker', cx: x(price), cy: y(sign * at), r: 6, fill: '#0b6e6e', stroke: '#fff', 'stroke-width': 2, 'data-value': at }),
    svg('text', { x: x(price), y: y(sign * at) - 11, 'text-anchor': x(price) > width / 2 ? 'end' : 'start', 'font-weight': 700, class: 'halo' }, money(at, data.units)),
  );
}

function drawFrontier(place, data, number) {
  const { picture, width, height } = canvas(place, CHART_HEIGHT, `${data.units.figure} without inspections, against inspections`);
  const frame = { left: 56, right: width - 12, top: 24, bottom: height - 40 };
  const points = data.pieces.map((piece) => [piece.looks, data.units.sign * piece.reward]);
  const [wide, tall] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const [low, high] = [Math.min(...tall), Math.max(...tall)];
  // A square-root scale: with free inspections there are many more than at the prices of interest.
  const most = Math.max(...wide) || 1;
  const root = scale(0, 1, frame.left, frame.right);
  const x = (value) => root(Math.sqrt(Math.max(0, value) / most));
  const y = scale(low - 0.08 * (high - low || 1), high + 0.08 * (high - low || 1), frame.bottom, frame.top);
  axes(picture, frame, x, y, [0, 0.05, 0.25, 0.5, 1].map((share) => Number((share * most).toPrecision(1))).filter((one, n, all) => one <= most && all.indexOf(one) === n),
    ticks(low, high, 4), data.onePrice ? 'inspections, discounted' : 'cost of inspections now, discounted', `other ${data.units.figure === 'cost' ? 'costs' : 'value'} ${data.units.currency}`);
  picture.append(svg('path', { d: line(points.map(([looks, rest]) => [x(looks), y(rest)])), fill: 'none', stroke: '#1c2a31', 'stroke-width': 2 }));
  points.forEach(([looks, rest], n) => {
    const is = n === number;
    const dot = svg('circle', { cx: x(looks), cy: y(rest), r: is ? 6 : 2.5, fill: is ? '#0b6e6e' : '#1c2a31', stroke: is ? '#fff' : 'none', 'stroke-width': 2 });
    if (is) { dot.id = 'frontier-marker'; dot.setAttribute('data-piece', n); }
    picture.append(dot);
  });
  picture.append(picture.querySelector('#frontier-marker'));
}
