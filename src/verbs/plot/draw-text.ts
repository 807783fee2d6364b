/** Draws a chart with characters: candles and lines of box lines, volumes of blocks. */
import { extremes, isUp, type Chart } from './chart.js';
import { volumeText, LONGEST_TEXT, shortText, valueScale } from './value-scale.js';
import type { Bar } from './read-bars.js';
import { timeTicks } from './time-grid.js';

export interface TextStyle {
  /** Of the terminal. The picture leaves the last line to the prompt of the shell. */
  readonly columns: number;
  readonly rows: number;
  readonly hasColour: boolean;
}

/** Columns of the value axis: its line, a mark and a text. */
const AXIS = LONGEST_TEXT + 2;
const [FEWEST_COLUMNS, FEWEST_PRICE_ROWS] = [24, 5];
/** A step takes at most so many columns, with the space behind its candle. */
const WIDEST_STEP = 4;

/** The columns between the axis and the left edge. */
export const plotColumns = (columns: number): number => Math.max(FEWEST_COLUMNS, columns - AXIS);

interface Area {
  readonly chart: Chart;
  readonly grid: CharacterGrid;
  /** Columns of a step. */
  readonly stepWidth: number;
  /** Columns left of the axis. */
  readonly width: number;
  readonly priceRows: number;
  readonly volumeRows: number;
}

export function chartText(chart: Chart, style: TextStyle): string[] {
  const legend = chart.kind === 'line' || style.hasColour ? [] : ['┃ up █ down'];
  const heads = [
    [chart.title, ...chart.subtitle],
    [...chart.figures, ...legend],
  ].flatMap((parts) => filled(parts, style.columns));
  // A command stays on one line, so that it can be copied; the terminal breaks it.
  const heights = [...heads, ...chart.notes].map((line) => Math.ceil(line.length / style.columns || 1));
  const taken = heights.reduce((sum, height) => sum + height, 0);
  // The axis takes two lines, the prompt one.
  const room = Math.max(FEWEST_PRICE_ROWS, style.rows - taken - 3);
  const volumeRows = chart.hasVolume && room >= 10 ? Math.max(2, Math.round(room * 0.2)) : 0;
  const steps = chart.grid.count;
  const stepWidth = Math.max(1, Math.min(WIDEST_STEP, Math.floor(plotColumns(style.columns) / steps)));
  const width = Math.max(FEWEST_COLUMNS, steps * stepWidth);
  const grid = new CharacterGrid(width + AXIS, room + 2, style.hasColour);
  const area = { chart, grid, stepWidth, width, priceRows: room - volumeRows, volumeRows };
  drawAxes(area);
  drawBars(area, style.hasColour);
  drawVolumes(area);
  return [...heads, ...grid.lines, ...chart.notes];
}

/** Parts separated by two spaces, in as few lines as they fit. */
function filled(parts: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 2 + part.length > columns) lines.push(part);
    else lines[lines.length - 1] = `${last}  ${part}`;
  }
  return lines;
}

function drawAxes({ chart, grid, stepWidth, width, priceRows, volumeRows }: Area): void {
  const bottom = priceRows + volumeRows;
  for (let row = 0; row < bottom; row += 1) grid.put(width, row, '│', 'grey');
  const stepsWithRows = new Set(chart.bars.map(({ index }) => index));
  for (let column = 0; column < width; column += 1)
    grid.put(column, bottom, stepsWithRows.has(Math.floor(column / stepWidth)) ? '─' : '╌', 'grey');
  grid.put(width, bottom, '┘', 'grey');
  for (const { index, text } of timeTicks(chart.grid, stepWidth)) {
    const column = index * stepWidth;
    if (column + text.length > width + AXIS) continue;
    grid.put(column, bottom, '┬', 'grey');
    grid.put(column, bottom + 1, text);
  }
}

/** Draws the ticks and the last value; returns the function from a value to a place, in halves of a row from the top. */
function drawScale({ chart, grid, width, priceRows }: Area): (value: number) => number {
  const { low, high } = extremes(chart.bars);
  const scale = valueScale(low, high, Math.max(2, Math.ceil(priceRows / 3)));
  const lowest = priceRows * 2 - 1;
  const position = (value: number): number => {
    const share = (scale.high - value) / (scale.high - scale.low);
    return Math.max(0, Math.min(lowest, Math.round(share * lowest)));
  };
  const rowOf = (value: number): number => Math.floor(position(value) / 2);
  for (const tick of scale.ticks) {
    grid.put(width, rowOf(tick), '┤', 'grey');
    grid.put(width + 2, rowOf(tick), scale.text(tick));
  }
  if (scale.low < 0 && scale.high > 0)
    for (let column = 0; column < width; column += 1) grid.put(column, rowOf(0), '┄', 'grey');
  const last = chart.bars.at(-1)?.close ?? 0;
  grid.put(width + 1, rowOf(last), `<${shortText(last, 8)}`.padEnd(LONGEST_TEXT + 1), 'bold');
  return position;
}

/** Characters by the upper and the lower half of a row: nothing, wick or body. */
const LIGHT = [' ╷╻', '╵│╽', '╹╿┃'];
/** Falling candles without colour. */
const SOLID = [' ╷▄', '╵│▄', '▀▀█'];

/** The bars of a line begin where the one before ends, unless rows are missing between them. */
function drawBars(area: Area, hasColour: boolean): void {
  const { chart, grid, stepWidth } = area;
  const position = drawScale(area);
  const isLine = chart.kind === 'line';
  for (const [at, bar] of chart.bars.entries()) {
    const before = isLine && !chart.breaks.includes(at) ? chart.bars[at - 1] : undefined;
    const open = before?.close ?? bar.open;
    const [top, bottom] = [position(Math.max(bar.high, open)), position(Math.min(bar.low, open))];
    const ends = [position(open), position(bar.close)];
    const [bodyTop, bodyBottom] = [Math.min(...ends), Math.max(...ends)];
    const kindOf = (half: number): number =>
      half >= bodyTop && half <= bodyBottom ? 2 : half >= top && half <= bottom ? 1 : 0;
    const shapes = hasColour || isLine || isUp(bar) ? LIGHT : SOLID;
    for (let row = Math.floor(top / 2); row <= Math.floor(bottom / 2); row += 1) {
      const halves = [kindOf(2 * row), kindOf(2 * row + 1)] as const;
      const character = shapes[halves[0]]?.[halves[1]] ?? ' ';
      grid.put(bar.index * stepWidth, row, character, isLine ? 'cyan' : colourOf(bar));
    }
  }
}

const colourOf = (bar: Bar): Colour => (isUp(bar) ? 'green' : 'red');

const EIGHTHS = ' ▁▂▃▄▅▆▇█';

function drawVolumes({ chart, grid, stepWidth, width, priceRows, volumeRows }: Area): void {
  if (volumeRows === 0) return;
  const most = Math.max(...chart.bars.map(({ volume }) => volume));
  grid.put(width + 1, priceRows, ` ${volumeText(most)}`);
  for (const bar of chart.bars) {
    if (bar.volume === 0) continue;
    const eighths = Math.max(1, Math.round((bar.volume / most) * volumeRows * 8));
    for (let up = 0; up * 8 < eighths; up += 1) {
      const character = EIGHTHS[eighths - up * 8] ?? '█';
      grid.put(bar.index * stepWidth, priceRows + volumeRows - 1 - up, character, colourOf(bar));
    }
  }
}

/** Colours of the terminal, so that its theme decides about them. */
type Colour = 'green' | 'red' | 'cyan' | 'grey' | 'bold';

const CODES: Readonly<Record<Colour, number>> = { green: 32, red: 31, cyan: 36, grey: 90, bold: 1 };

class CharacterGrid {
  readonly #rows: string[][];

  constructor(
    width: number,
    height: number,
    private readonly hasColour: boolean,
  ) {
    this.#rows = Array.from({ length: height }, () => Array.from({ length: width }, () => ' '));
  }

  /** Writes a text from this column on. Parts outside of the grid are left out. */
  put(column: number, row: number, text: string, colour?: Colour): void {
    const cells = this.#rows[row] ?? [];
    for (const [at, character] of Array.from(text).entries()) {
      const isPlain = !this.hasColour || colour === undefined || character === ' ';
      if (column + at < cells.length)
        cells[column + at] = isPlain ? character : `\u001b[${CODES[colour]}m${character}\u001b[0m`;
    }
  }

  /** Without trailing spaces. */
  get lines(): string[] {
    return this.#rows.map((cells) => cells.join('').trimEnd());
  }
}
