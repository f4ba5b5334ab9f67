// Numbers and money as text, formatted as in the Python code.

/** A number with four significant digits, or all digits of its whole part. */
function plainNumber(value) {
  if (Math.abs(value) < 1e-12) return '0';
  const digits = Math.min(12, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value)))));
  const [whole, rest = ''] = Math.abs(value).toFixed(digits).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  const decimals = rest.replace(/0+$/, '');
  return (value < 0 ? '-' : '') + grouped + (decimals && '.' + decimals);
}

/** A sum of money with its sign; null stands for an infinite one. */
function amount(value, units) {
  if (value === null || !Number.isFinite(value)) return 'infinite';
  return (plainNumber(value) + ' ' + units.currency).trim();
}

/** A return as it is shown: costs are positive. */
const money = (value, units) => amount(value === null ? null : units.sign * value, units);

/** A probability in whole percent; only 0 is shown as 0 %, only 1 as 100 %. */
function percent(share) {
  if (share > 0 && share < 0.005) return '<1 %';
  if (share >= 0.995 && share < 1 - 1e-12) return '>99 %';
  return Math.round(100 * share) + ' %';
}

const periods = (count, units) => plainNumber(count) + ' ' + units.period + (plainNumber(count) === '1' ? '' : 's');

/** An average time with one decimal, or none if it is long. */
const about = (count, units) => periods(count < 100 ? Math.round(10 * count) / 10 : Math.round(count), units);

/** The loss of a value against the best; 0 if the difference may come from rounding. */
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

/** Texts of evenly spaced ticks, with as many digits as tell them apart. */
function tickTexts(values) {
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : 0;
  const digits = step > 0 ? Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))) : null;
  return values.map((value) => {
    if (digits === null || digits > 6) return plainNumber(value);
    const text = Math.abs(value).toFixed(digits).split('.');
    text[0] = text[0].replace(/\B(?=(\d{3})+$)/g, ',');
    return (Number(value.toFixed(digits)) < 0 ? '-' : '') + text.join('.');
  });
}
