// Draws the chart of `cryptodl plot --html` with uPlot: candles and volumes, or a line.

const plot = /** @type {Plot} */ (
  JSON.parse(document.querySelector('script[data-kind="plot"]')?.textContent ?? '')
);

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {number | null | undefined} value */
function valueText(value) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-6 || size >= 1e15)
    ? value.toPrecision(4)
    : value.toLocaleString('en-US', { maximumSignificantDigits: 8 });
}

/** @param {number} ms */
function instantText(ms) {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/**
 * Days, and times where the steps are shorter.
 * @param {uPlot} _
 * @param {number[]} splits seconds since 1970
 */
function dateTexts(_, splits) {
  const isByDay = splits.every((split) => split % 86_400 === 0);
  return splits.map((split) => instantText(split * 1000).slice(...(isByDay ? [0, 10] : [5])));
}

/** Columns for uPlot: times in seconds, and the close (or the values of the line, with null at each break). */
function columns() {
  if (plot.kind === 'candles')
    return [plot.bars.map(([from]) => from / 1000), plot.bars.map(([, , , , , close]) => close)];
  const breaks = new Set(plot.breaks);
  /** @type {number[]} */
  const xs = [];
  /** @type {(number | null)[]} */
  const ys = [];
  for (const [at, [from, to, open, high, low, close]] of plot.bars.entries()) {
    if (breaks.has(at)) {
      xs.push((from + (xs.at(-1) ?? 0) * 1000) / 2000);
      ys.push(null);
    }
    const values = from === to ? [close] : [open, high, low, close];
    for (const [step, value] of values.entries()) {
      xs.push((from + ((to - from) * step) / Math.max(1, values.length - 1)) / 1000);
      ys.push(value);
    }
  }
  return [xs, ys];
}

/** uPlot numbers the sides clockwise from the top. */
const RIGHT = /** @type {uPlot.Axis.Side} */ (/** @type {unknown} */ (1));

/** Candles narrower than this many pixels are joined. */
const NARROWEST = 3;
/** The part of the height that the volumes take. */
const VOLUME_SHARE = 0.2;

/** @param {uPlot} chart */
function barsInRange(chart) {
  const { min, max } = chart.scales['x'] ?? {};
  return plot.bars.filter(([from, to]) => to / 1000 > (min ?? -Infinity) && from / 1000 < (max ?? Infinity));
}

/**
 * The visible bars, joined so that each has enough pixels.
 * @param {uPlot} chart
 */
function visibleBars(chart) {
  const bars = barsInRange(chart);
  const [first] = bars;
  if (first === undefined) return [];
  const pixels = Math.abs(
    chart.valToPos(first[1] / 1000, 'x', true) - chart.valToPos(first[0] / 1000, 'x', true),
  );
  const joined = Math.max(1, Math.ceil(NARROWEST / Math.max(pixels, 0.01)));
  /** @type {PlotBar[]} */
  const all = [];
  for (let at = 0; at < bars.length; at += joined) {
    const part = bars.slice(at, at + joined);
    const [begin, end] = [part[0], part.at(-1)];
    if (begin === undefined || end === undefined) continue;
    all.push([
      begin[0],
      end[1],
      begin[2],
      Math.max(...part.map(([, , , high]) => high)),
      Math.min(...part.map(([, , , , low]) => low)),
      end[5],
      part.reduce((sum, [, , , , , , volume]) => sum + volume, 0),
    ]);
  }
  return all;
}

/** @param {uPlot} chart */
function drawCandles(chart) {
  const { ctx, bbox } = chart;
  const bars = visibleBars(chart);
  const most = Math.max(...bars.map(([, , , , , , volume]) => volume));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = devicePixelRatio;
  for (const [from, to, open, high, low, close, volume] of bars) {
    const isUp = close >= open;
    const [left, right] = [chart.valToPos(from / 1000, 'x', true), chart.valToPos(to / 1000, 'x', true)];
    const width = Math.max(1, Math.min((right - left) * 0.7, 24 * devicePixelRatio));
    const middle = (left + right) / 2;
    const [top, bottom] = [Math.max(open, close), Math.min(open, close)].map((price) =>
      chart.valToPos(price, 'y', true),
    );
    ctx.strokeStyle = ctx.fillStyle = colour(isUp ? '--up' : '--down');
    if (plot.hasVolume) {
      const height = (volume / most) * bbox.height * VOLUME_SHARE;
      ctx.globalAlpha = 0.45;
      ctx.fillRect(middle - width / 2, bbox.top + bbox.height - height, width, height);
      ctx.globalAlpha = 1;
    }
    ctx.beginPath();
    ctx.moveTo(middle, chart.valToPos(high, 'y', true));
    ctx.lineTo(middle, chart.valToPos(low, 'y', true));
    ctx.stroke();
    const height = Math.max(1, (bottom ?? 0) - (top ?? 0));
    // Rising candles are hollow, so that the kinds differ without colours.
    if (isUp && width > 3) {
      ctx.fillStyle = colour('--card');
      ctx.fillRect(middle - width / 2, top ?? 0, width, height);
      ctx.strokeRect(middle - width / 2, top ?? 0, width, height);
    } else ctx.fillRect(middle - width / 2, top ?? 0, width, height);
  }
  ctx.restore();
}

/**
 * The range of the visible values; candles leave room for the volumes.
 * @param {uPlot} chart
 * @param {number} least
 * @param {number} most
 * @returns {uPlot.Range.MinMax}
 */
function valueRange(chart, least, most) {
  let [low, high] = [least, most];
  if (plot.kind === 'candles') {
    // The chart has no pixels yet when it asks for its first range.
    const bars = barsInRange(chart);
    low = Math.min(...bars.map(([, , , , value]) => value));
    high = Math.max(...bars.map(([, , , value]) => value));
  }
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  const spread = high > low ? high - low : Math.abs(high) * 0.002 || 1;
  return [low - spread * (plot.hasVolume ? VOLUME_SHARE * 1.4 : 0.05), high + spread * 0.05];
}

/** @param {HTMLElement} place */
function drawPlot(place) {
  const axis = {
    stroke: colour('--muted'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
    font: '12px system-ui, sans-serif',
  };
  const isCandles = plot.kind === 'candles';
  /** @type {(field: 2 | 3 | 4 | 6) => uPlot.Series.Value} */
  const fieldOf = (field) => (_, __, ___, at) => valueText(plot.bars[at ?? -1]?.[field]);
  /** @type {(label: string, field: 2 | 3 | 4 | 6) => uPlot.Series} */
  const figure = (label, field) => ({ label, stroke: 'transparent', value: fieldOf(field) });
  const [xs = [], ys = []] = columns();
  const figures = isCandles
    ? [
        figure('open', 2),
        figure('high', 3),
        figure('low', 4),
        ...(plot.hasVolume ? [figure('volume', 6)] : []),
      ]
    : [];
  /** @type {uPlot.Options} */
  const options = {
    width: place.clientWidth,
    height: Math.max(260, Math.min(0.6 * innerHeight, 600)),
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    scales: { y: { range: valueRange } },
    padding: [null, null, null, 44],
    cursor: { drag: { x: true, y: false } },
    axes: [
      { ...axis, space: 100, values: dateTexts },
      { ...axis, side: RIGHT, size: 92, values: (_, splits) => splits.map(valueText) },
    ],
    series: [
      { label: 'time (UTC)', value: (_, x) => (x === null ? '–' : instantText(x * 1000)) },
      {
        label: isCandles ? 'close' : 'value',
        stroke: isCandles ? 'transparent' : colour('--line-1'),
        width: 1.5,
        points: { show: !isCandles && xs.length < 40 },
        value: (_, value) => valueText(value),
      },
      ...figures,
    ],
    hooks: isCandles ? { draw: [drawCandles] } : {},
  };
  // uPlot wants values for each series; those of the figures come from the bars.
  const none = xs.map(() => null);
  return new uPlot(options, /** @type {uPlot.AlignedData} */ ([xs, ys, ...figures.map(() => none)]), place);
}

/**
 * A button that shows another part of the range: `part` is the new part of the visible time, `shift` moves it.
 * @param {string} label
 * @param {() => uPlot} chart
 * @param {number} part
 * @param {number} shift
 */
function rangeButton(label, chart, part, shift) {
  const button = el('button', { type: 'button' }, label);
  button.addEventListener('click', () => {
    const { min = 0, max = 0 } = chart().scales['x'] ?? {};
    const [first, last] = [(plot.bars[0]?.[0] ?? 0) / 1000, (plot.bars.at(-1)?.[1] ?? 0) / 1000];
    const span = Math.min(((max ?? 0) - (min ?? 0)) * part, last - first);
    const middle = ((min ?? 0) + (max ?? 0)) / 2 + shift * span;
    const from = Math.max(first, Math.min(last - span, middle - span / 2));
    chart().setScale('x', { min: from, max: from + span });
  });
  return button;
}

function barTable() {
  const newest = plot.bars.toReversed();
  /** @type {(title: string, field: 2 | 3 | 4 | 5 | 6) => Column<PlotBar>} */
  const column = (title, field) => ({ title, isNumber: true, of: (bar) => valueText(bar[field]) });
  const isCandles = plot.kind === 'candles';
  return table(
    isCandles ? 'Candles, newest first' : 'Values, newest first',
    [
      { title: 'time (UTC)', of: ([from]) => instantText(from) },
      ...(isCandles ? [column('open', 2)] : []),
      column('high', 3),
      column('low', 4),
      column(isCandles ? 'close' : 'last', 5),
      ...(plot.hasVolume ? [column('volume', 6)] : []),
    ],
    newest,
  );
}

function startPlot() {
  const summary = [...plot.subtitle, ...plot.figures].join(' · ');
  const place = el('div', { class: 'plot card', role: 'img', 'aria-label': `${plot.title}. ${summary}` });
  /** @type {uPlot} */
  let chart;
  const tools = el(
    'div',
    { class: 'tools', role: 'group', 'aria-label': 'Range' },
    rangeButton('Zoom in', () => chart, 0.5, 0),
    rangeButton('Zoom out', () => chart, 2, 0),
    rangeButton('Earlier', () => chart, 1, -0.5),
    rangeButton('Later', () => chart, 1, 0.5),
    note(
      `Drag over the chart to zoom; a double click shows all.${plot.kind === 'candles' ? ' Candles that would be too narrow are joined.' : ''}`,
    ),
  );
  document.title = plot.title;
  document.body.append(
    el(
      'main',
      {},
      el('div', {}, el('h1', {}, plot.title), el('p', {}, summary)),
      place,
      tools,
      ...(plot.notes.length > 0
        ? [el('ul', { class: 'notes' }, ...plot.notes.map((text) => el('li', {}, text)))]
        : []),
      folded('Table', barTable),
    ),
  );
  const draw = () => {
    chart?.destroy();
    chart = drawPlot(place);
  };
  draw();
  let { clientWidth } = place;
  new ResizeObserver(() => {
    if (place.clientWidth === clientWidth) return;
    clientWidth = place.clientWidth;
    draw();
  }).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
}

startPlot();
