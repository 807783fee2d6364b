/** Draws a chart as SVG: readable in light and dark surroundings, and without colours, because rising candles are hollow. */
import type { Chart } from './chart.js';
import { extremes, isUp } from './chart.js';
import type { Bar } from './read-bars.js';
import { timeTicks } from './time-grid.js';
import { amountText, valueScale, valueText } from './value-scale.js';

/** The beginning of each file. A file that begins so may be replaced. */
export const SVG_START = '<!-- cryptodl plot -->\n';

const [WIDTH, HEIGHT] = [960, 540];
const MARGIN = { left: 14, right: 92, top: 62 } as const;
const [TIME_AXIS, NOTE_LINE, VOLUME] = [30, 17, 84];
/** The width between the margins. */
const PLOT_WIDTH = WIDTH - MARGIN.left - MARGIN.right;

/** The largest number of steps: a candle needs five units, a line one. */
export const SVG_SIZE = { candles: Math.floor(PLOT_WIDTH / 5), points: PLOT_WIDTH } as const;

const STYLE = `svg{--page:#fff;--text:#1b2330;--muted:#525d6e;--line:#dde1e8;--up:#0b7a5a;--down:#b3261e;--value:#1f6fc4}
@media(prefers-color-scheme:dark){svg{--page:#12161d;--text:#e6eaf0;--muted:#a6b0bf;--line:#323b49;--up:#4fd1a5;--down:#ff8a80;--value:#6fb1f5}}
svg{max-width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:var(--muted)}.title{font-size:16px;font-weight:600;fill:var(--text)}.figures,.last{fill:var(--text)}
.last{font-weight:600}.page{fill:var(--page)}path{fill:none;stroke-width:1.2}.grid{stroke:var(--line)}.zero{stroke:var(--muted);stroke-dasharray:4 3}
.up{stroke:var(--up)}.up.body{fill:var(--page)}.down{stroke:var(--down)}.down.body{fill:var(--down)}.value{stroke:var(--value);stroke-width:1.5;stroke-linejoin:round}
.volume{stroke:none;opacity:.6}.up.volume{fill:var(--up)}.down.volume{fill:var(--down)}`;

export function chartSvg(chart: Chart): string {
  const notes = chart.notes.flatMap((note) => wrapped(note));
  const bottom = HEIGHT - TIME_AXIS;
  const priceBottom = chart.hasVolume ? bottom - VOLUME - 12 : bottom;
  const height = HEIGHT + notes.length * NOTE_LINE + (notes.length > 0 ? 8 : 0);
  const subtitle = [...chart.subtitle, ...chart.figures].join(' · ');
  return `${SVG_START}<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description">
<title id="title">${escaped(chart.title)}</title>
<desc id="description">${escaped([subtitle, ...chart.notes].join('. '))}</desc>
<style>${STYLE}</style>
<rect class="page" width="${WIDTH}" height="${height}"/>
${textAt(MARGIN.left, 26, chart.title, 'title')}
${textAt(MARGIN.left, 46, subtitle, 'figures')}
${[
  ...timeAxis(chart, bottom),
  ...prices(chart, priceBottom),
  ...(chart.hasVolume ? volumes(chart, bottom) : []),
  ...notes.map((note, at) => textAt(MARGIN.left, HEIGHT + 8 + at * NOTE_LINE, note)),
].join('\n')}
</svg>
`;
}

/** Lines of about the width of the picture. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length > 145) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

function stepWidthOf({ grid }: Chart): number {
  return PLOT_WIDTH / grid.count;
}

/** The middle of a step. */
function xOf(chart: Chart, at: number): number {
  return MARGIN.left + (at + 0.5) * stepWidthOf(chart);
}

function timeAxis(chart: Chart, bottom: number): string[] {
  const stepWidth = stepWidthOf(chart);
  const ticks = timeTicks(chart.grid, {
    stepWidth,
    textWidth: (text) => text.length * 7 + 20,
    dayStartMs: chart.dayStartMs,
  });
  return ticks.flatMap(({ index, text }) => {
    const x = MARGIN.left + index * stepWidth;
    return [
      pathOf(`M${round(x)} ${MARGIN.top}V${bottom + 5}`, 'grid'),
      textAt(Math.min(x + 3, WIDTH - MARGIN.right), bottom + 18, text),
    ];
  });
}

function prices(chart: Chart, bottom: number): string[] {
  const { low, high } = extremes(chart.bars);
  const scale = valueScale(low, high, 8);
  const yOf = (value: number): number =>
    MARGIN.top + 8 + ((scale.high - value) / (scale.high - scale.low)) * (bottom - MARGIN.top - 16);
  const last = chart.bars.at(-1)?.close ?? 0;
  const labels = scale.ticks.filter((tick) => Math.abs(yOf(tick) - yOf(last)) > 13);
  return [
    ...scale.ticks.map((tick) =>
      pathOf(`M${MARGIN.left} ${round(yOf(tick))}H${WIDTH - MARGIN.right}`, 'grid'),
    ),
    ...(low < 0 && high > 0
      ? [pathOf(`M${MARGIN.left} ${round(yOf(0))}H${WIDTH - MARGIN.right}`, 'zero')]
      : []),
    ...labels.map((tick) => textAt(WIDTH - MARGIN.right + 8, yOf(tick) + 4, scale.text(tick))),
    ...(chart.kind === 'candles' ? candles(chart, yOf) : [line(chart, yOf)]),
    textAt(WIDTH - MARGIN.right + 8, yOf(last) + 4, valueText(last), 'last'),
  ];
}

function candles(chart: Chart, yOf: (value: number) => number): string[] {
  const half = Math.min(12, stepWidthOf(chart) * 0.35);
  return [true, false].flatMap((rising) => {
    const bars = chart.bars.filter((bar) => isUp(bar) === rising);
    const kind = rising ? 'up' : 'down';
    const wicks = bars.map(
      (bar) => `M${round(xOf(chart, bar.at))} ${round(yOf(bar.high))}V${round(yOf(bar.low))}`,
    );
    const bodies = bars.map((bar) => {
      const top = yOf(Math.max(bar.open, bar.close));
      const height = Math.max(0.5, yOf(Math.min(bar.open, bar.close)) - top);
      return boxOf(xOf(chart, bar.at) - half, top, half * 2, height);
    });
    return bars.length === 0 ? [] : [pathOf(wicks.join(''), kind), pathOf(bodies.join(''), `${kind} body`)];
  });
}

/** A line through the first, highest, lowest and last value of each step; a value without neighbours is a dot. */
function line(chart: Chart, yOf: (value: number) => number): string {
  let path = '';
  let before: Bar | undefined;
  for (const bar of chart.bars) {
    const x = round(xOf(chart, bar.at));
    const isStart = before === undefined || !chart.isJoined(before, bar);
    path += `${isStart ? 'M' : 'L'}${x} ${round(yOf(bar.open))}V${round(yOf(bar.high))}V${round(yOf(bar.low))}V${round(yOf(bar.close))}`;
    if (isStart) path += 'h.1';
    before = bar;
  }
  return pathOf(path, 'value');
}

function volumes(chart: Chart, bottom: number): string[] {
  const most = Math.max(...chart.bars.map(({ volume }) => volume));
  const half = Math.min(12, stepWidthOf(chart) * 0.35);
  const boxes = (rising: boolean): string =>
    chart.bars
      .filter((bar) => isUp(bar) === rising && bar.volume > 0)
      .map((bar) => {
        const height = Math.max(0.5, (bar.volume / most) * VOLUME);
        return boxOf(xOf(chart, bar.at) - half, bottom - height, half * 2, height);
      })
      .join('');
  return [
    pathOf(boxes(true), 'up volume'),
    pathOf(boxes(false), 'down volume'),
    textAt(WIDTH - MARGIN.right + 8, bottom - VOLUME + 10, `volume ${amountText(most)}`),
  ];
}

function boxOf(x: number, y: number, width: number, height: number): string {
  return `M${round(x)} ${round(y)}h${round(width)}v${round(height)}h-${round(width)}z`;
}

function pathOf(path: string, kind: string): string {
  return `<path class="${kind}" d="${path}"/>`;
}

function textAt(x: number, y: number, text: string, kind?: string): string {
  return `<text x="${round(x)}" y="${round(y)}"${kind === undefined ? '' : ` class="${kind}"`}>${escaped(text)}</text>`;
}

function round(number: number): string {
  return String(Math.round(number * 100) / 100);
}

/** XML allows no control characters. */
function escaped(text: string): string {
  return text
    .replaceAll(/\p{Cc}/gu, '\uFFFD')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
