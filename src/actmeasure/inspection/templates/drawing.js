// SVG elements, scales, axes and patterns.

const SVG = 'http://www.w3.org/2000/svg';

/** An SVG element with attributes and children; text is always text, never markup. */
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** An SVG as wide as its container, so that text keeps its size on a phone. */
function canvas(place, height, label) {
  const width = Math.max(280, Math.round(place.clientWidth || 640));
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label });
  place.replaceChildren(picture);
  return { picture, width, height };
}

/** A linear scale from values to positions. */
const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

/** Points as a path. */
const line = (points) => points.map(([x, y], n) => `${n ? 'L' : 'M'}${x.toFixed(2)} ${y.toFixed(2)}`).join('');

/** Axes with round numbers; `frame` has left, right, top and bottom. */
function axes(picture, frame, x, y, xTicks, yTicks, xName, yName) {
  const [xTexts, yTexts] = [tickTexts(xTicks), tickTexts(yTicks)];
  yTicks.forEach((value, n) => {
    picture.append(
      svg('line', { x1: frame.left, x2: frame.right, y1: y(value), y2: y(value), stroke: '#d5dde1' }),
      svg('text', { x: frame.left - 6, y: y(value) + 4, 'text-anchor': 'end', class: 'soft' }, yTexts[n]),
    );
  });
  xTicks.forEach((value, n) => {
    picture.append(svg('text', { x: x(value), y: frame.bottom + 16, 'text-anchor': 'middle', class: 'soft' }, xTexts[n]));
  });
  picture.append(
    svg('line', { x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom, stroke: '#5a6a72' }),
    svg('text', { x: frame.right, y: frame.bottom + 32, 'text-anchor': 'end', class: 'soft' }, xName),
    svg('text', { x: 0, y: 11, class: 'soft' }, yName),
  );
}

// Light to dark, and a pattern for each, so that bands can be told apart in black and white.
const INKS = ['#e3eeee', '#b9d8d6', '#8cbfbd', '#f0d9a8', '#dba95c', '#c0713c', '#8e3b2f', '#cfd6da'];
const MARKS = ['', 'M0 8L8 0', 'M0 0L8 8', 'M0 4H8', 'M4 0V8', 'M0 8L8 0M0 0L8 8', 'M0 4H8M4 0V8', 'M2 2h1M6 6h1'];

/** Add patterns for bands in a <defs>; return the fill of each band. */
function fills(picture, found) {
  const defs = svg('defs');
  picture.append(defs);
  return found.map((band, n) => {
    const number = band.kind === 'state' ? n % 7 : 7;
    const id = `fill-${n}`;
    defs.append(
      svg('pattern', { id, width: 8, height: 8, patternUnits: 'userSpaceOnUse' },
        svg('rect', { width: 8, height: 8, fill: band.kind === 'over' ? '#fff' : INKS[number] }),
        svg('path', { d: MARKS[number], stroke: '#1c2a31', 'stroke-width': 0.7, 'stroke-opacity': 0.45, fill: 'none' })),
    );
    return `url(#${id})`;
  });
}
