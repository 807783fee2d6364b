// Charts over time by uPlot, each with a table of the same numbers.

/** @typedef {{ label: string, values: (number | null)[], text: (value: number) => string }} Line */

/** @type {(() => void)[]} Draws every chart again, for another size or theme. */
const redraws = [];

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * @param {object} chart
 * @param {string} chart.title
 * @param {string} chart.xTitle
 * @param {number[]} chart.xs
 * @param {(x: number) => string} chart.xText
 * @param {boolean} [chart.isTime] The values of `xs` are seconds since 1970.
 * @param {Line[]} chart.lines
 * @param {boolean} [chart.hasPoints]
 */
function chart({ title, xTitle, xs, xText, isTime = false, lines, hasPoints = false }) {
  const plotted = el('div', {
    class: 'plot',
    role: 'img',
    'aria-label': `${title}. ${lines.map(summaryOf).join('. ')}`,
  });
  const card = el('div', { class: 'card chart' }, el('h3', {}, title), plotted);
  /** @type {uPlot | undefined} */
  let drawn;
  const draw = () => {
    drawn?.destroy();
    drawn = undefined;
    if (plotted.clientWidth === 0) return;
    const axis = {
      stroke: colour('--muted'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line'), width: 1 },
      font: '12px system-ui, sans-serif',
    };
    /** @type {uPlot.Options} */
    const options = {
      width: plotted.clientWidth,
      height: 190,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { x: { time: isTime }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
      cursor: { drag: { x: false, y: false } },
      axes: [
        {
          ...axis,
          space: isTime ? 90 : 60,
          ...(isTime
            ? { values: dateTexts }
            : { incrs: STEPS_S, values: (_, splits) => splits.map(clockText) }),
        },
        { ...axis, size: 74, values: (_, splits) => splits.map((value) => lines[0]?.text(value) ?? '') },
      ],
      series: [
        { label: xTitle, value: (_, x) => (x === null ? '–' : xText(x)) },
        ...lines.map(({ label, text }, at) => ({
          label,
          stroke: colour(`--line-${at + 1}`),
          width: 2,
          ...(at === 1 ? { dash: [6, 4] } : at === 2 ? { dash: [2, 3] } : {}),
          points: { show: hasPoints || xs.length < 30, size: 5 },
          value: (/** @type {uPlot} */ _, /** @type {number | null} */ value) =>
            value === null ? '–' : text(value),
        })),
      ],
    };
    drawn = new uPlot(options, [xs, ...lines.map(({ values }) => values)], plotted);
  };
  if (xs.length < 2) plotted.replaceWith(note('Too few points for a chart: the table has them.'));
  else {
    redraws.push(draw);
    new ResizeObserver(() => {
      if (drawn === undefined || drawn.width !== plotted.clientWidth) draw();
    }).observe(plotted);
  }
  /** @type {Column<number>[]} */
  const columns = [
    { title: xTitle, of: (at) => xText(xs[at] ?? 0) },
    ...lines.map(({ label, values, text }) => ({
      title: label,
      isNumber: true,
      of: (/** @type {number} */ at) => valueText(values[at], text),
    })),
  ];
  card.append(folded('Table', () => table(title, columns, [...xs.keys()])));
  return card;
}

/** Steps of an axis with seconds: whole minutes and hours where seconds are too many. */
const STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
];

/**
 * `1:05` and `1:00:00`
 * @param {number} seconds
 */
function clockText(seconds) {
  const pad = (/** @type {number} */ part) => String(Math.floor(part)).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}

/**
 * Days, and times where the steps are shorter.
 * @param {uPlot} _
 * @param {number[]} splits seconds since 1970
 */
function dateTexts(_, splits) {
  const isByDay = splits.every((split) => split % 86_400 === 0);
  return splits.map((split) => {
    const iso = new Date(split * 1000).toISOString();
    return isByDay ? iso.slice(0, 10) : iso.slice(5, 16).replace('T', ' ');
  });
}

/**
 * @param {number | null | undefined} value
 * @param {(value: number) => string} text
 */
function valueText(value, text) {
  return value === null || value === undefined ? '–' : text(value);
}

/** @param {Line} line */
function summaryOf({ label, values, text }) {
  const known = values.filter((value) => value !== null).toSorted((a, b) => a - b);
  if (known.length === 0) return `${label}: no values`;
  const at = (/** @type {number} */ share) => text(known[Math.floor(share * (known.length - 1))] ?? 0);
  return `${label}: lowest ${at(0)}, median ${at(0.5)}, highest ${at(1)}`;
}

/**
 * The latency below which a share of the attempts ended, in seconds: linear within its bucket, null without attempts.
 * @param {readonly number[]} counts
 * @param {readonly number[]} bounds
 * @param {number} share
 */
function percentileOf(counts, bounds, share) {
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  if (wanted === 0) return null;
  let before = 0;
  for (const [at, count] of counts.entries()) {
    const low = bounds[at - 1] ?? 0;
    if (before + count >= wanted) return low + ((bounds[at] ?? low) - low) * ((wanted - before) / count);
    before += count;
  }
  return bounds.at(-1) ?? null;
}
