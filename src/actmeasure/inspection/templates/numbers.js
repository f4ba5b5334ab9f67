// Numbers and money in words, as on the rest of the page.

/** Four digits that count, never fewer than the whole part has. */
function plainNumber(value) {
  if (Math.abs(value) < 1e-12) return '0';
  const digits = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value)))));
  const [whole, rest = ''] = Math.abs(value).toFixed(digits).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  const decimals = rest.replace(/0+$/, '');
  return (value < 0 ? '-' : '') + grouped + (decimals && '.' + decimals);
}

/** A sum of money, as it is; null stands for one without end. */
function amount(value, units) {
  if (value === null || !Number.isFinite(value)) return 'without end';
  return (plainNumber(value) + ' ' + units.currency).trim();
}

/** A return as it is shown: costs above 0. */
const money = (value, units) => amount(value === null ? null : units.sign * value, units);

/** A probability in whole percent; nothing possible is 0 %, nothing doubtful 100 %. */
function percent(share) {
  if (share > 0 && share < 0.005) return '<1 %';
  if (share >= 0.995 && share < 1 - 1e-12) return '>99 %';
  return Math.round(100 * share) + ' %';
}

const periods = (count, units) => plainNumber(count) + ' ' + units.period + (plainNumber(count) === '1' ? '' : 's');

/** A time that is an average, without digits that say nothing. */
const about = (count, units) => periods(count < 100 ? Math.round(10 * count) / 10 : Math.round(count), units);

/** How much less a value is than the best; what rounding alone makes of equal ones is nothing. */
const lost = (best, value) => (Math.abs(best - value) <= 1e-9 * (1 + Math.abs(best)) ? 0 : best - value);

/** About `count` round numbers from low to high. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * (1 - 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}
