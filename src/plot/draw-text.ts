/** Draws a chart with characters: candles of box lines, volumes of blocks, lines of braille dots, or all of it in ASCII. */
import type { Chart } from './chart.js';
import { extremes, isUp } from './chart.js';
import { CharacterGrid, DotCanvas } from './character-grid.js';
import type { Colour } from './character-grid.js';
import type { Bar } from './read-bars.js';
import { timeTicks } from './time-grid.js';
import { amountText, LONGEST_TEXT, shortText, valueScale } from './value-scale.js';
import type { ValueScale } from './value-scale.js';

export interface TextStyle {
  /** Of the terminal. The picture leaves the last line to the prompt of the shell. */
  readonly columns: number;
  readonly rows: number;
  readonly hasColour: boolean;
  readonly isUnicode: boolean;
}

/** Columns of the value axis: its line, a mark and a text. */
const AXIS = LONGEST_TEXT + 2;
const [FEWEST_COLUMNS, FEWEST_PRICE_ROWS] = [24, 5];
/** A candle takes at most so many columns, with the space behind it. */
const WIDEST_CANDLE = 4;

/** The columns between the axis and the left edge. */
export function plotColumns(columns: number): number {
  return Math.max(FEWEST_COLUMNS, columns - AXIS);
}

interface Area {
  readonly chart: Chart;
  readonly style: TextStyle;
  readonly grid: CharacterGrid;
  /** Columns of a step: a whole number for candles, a half for the dots of a line. */
  readonly stepWidth: number;
  /** Columns left of the axis. */
  readonly width: number;
  readonly priceRows: number;
  readonly volumeRows: number;
}

export function chartText(chart: Chart, style: TextStyle): string[] {
  const heads = headLines(chart, style);
  // A command stays on one line, so that it can be copied; the terminal breaks it.
  const below = chart.notes.map((note) => encoded(note, style));
  const taken = [...heads, ...below].reduce(
    (sum, line) => sum + Math.ceil(line.length / style.columns || 1),
    0,
  );
  // The axis takes two lines, the prompt one.
  const room = Math.max(FEWEST_PRICE_ROWS, style.rows - taken - 3);
  const volumeRows = chart.hasVolume && room >= 10 ? Math.max(2, Math.round(room * 0.2)) : 0;
  const area = areaOf(chart, style, { priceRows: room - volumeRows, volumeRows });
  drawAxes(area);
  if (chart.kind === 'candles') drawCandles(area);
  else drawLine(area);
  drawVolumes(area);
  return [...heads, ...area.grid.lines(style.hasColour), ...below];
}

function areaOf(
  chart: Chart,
  style: TextStyle,
  rows: { readonly priceRows: number; readonly volumeRows: number },
): Area {
  const room = plotColumns(style.columns);
  const stepWidth =
    chart.kind === 'candles'
      ? Math.max(1, Math.min(WIDEST_CANDLE, Math.floor(room / chart.grid.count)))
      : room / chart.grid.count;
  const width = Math.max(FEWEST_COLUMNS, Math.round(chart.grid.count * stepWidth));
  const grid = new CharacterGrid(width + AXIS, rows.priceRows + rows.volumeRows + 2);
  return { chart, style, grid, stepWidth, width, ...rows };
}

/** Title, range and figures, filled to the width of the terminal. */
function headLines(chart: Chart, style: TextStyle): string[] {
  const { columns, hasColour, isUnicode } = style;
  const legend = chart.kind === 'line' || hasColour ? [] : [isUnicode ? '┃ up █ down' : 'o up # down'];
  const heads = [
    ...filled([chart.title, ...chart.subtitle], columns),
    ...filled([...chart.figures, ...legend], columns),
  ];
  return heads.map((line) => encoded(line, style));
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

function encoded(text: string, { isUnicode }: TextStyle): string {
  return isUnicode ? text : text.replaceAll('…', '...').replaceAll(/[^\u0020-\u007e]/g, '?');
}

function drawAxes({ chart, style, grid, stepWidth, width, priceRows, volumeRows }: Area): void {
  const [line, corner, mark, rule, none] = style.isUnicode
    ? ['│', '┘', '┬', '─', '╌']
    : ['|', '+', '+', '-', '.'];
  const bottom = priceRows + volumeRows;
  for (let row = 0; row < bottom; row += 1) grid.put(width, row, line, 'grey');
  const held = new Set(chart.bars.map(({ at }) => Math.floor(at * stepWidth)));
  for (let column = 0; column < width; column += 1) {
    const isHeld = chart.kind === 'line' || held.has(Math.floor(Math.floor(column / stepWidth) * stepWidth));
    grid.put(column, bottom, isHeld ? rule : none, 'grey');
  }
  grid.put(width, bottom, corner, 'grey');
  for (const { index, text } of timeTicks(chart.grid, stepWidth)) {
    const column = Math.floor(index * stepWidth);
    if (column + text.length > width + AXIS) continue;
    grid.put(column, bottom, mark, 'grey');
    grid.put(column, bottom + 1, text);
  }
}

/** Draws the ticks and the last value; returns the function from a value to a row, counted in parts of a row from the top. */
function drawScale({ chart, style, grid, width, priceRows }: Area, parts: number): (value: number) => number {
  const { low, high } = extremes(chart.bars);
  const scale = valueScale(low, high, Math.max(2, Math.ceil(priceRows / 3)));
  const position = (value: number): number => placeOf(scale, value, priceRows * parts);
  const rowOf = (value: number): number => Math.floor(position(value) / parts);
  for (const tick of scale.ticks) {
    grid.put(width, rowOf(tick), style.isUnicode ? '┤' : '+', 'grey');
    grid.put(width + 2, rowOf(tick), scale.text(tick));
  }
  if (scale.low < 0 && scale.high > 0)
    for (let column = 0; column < width; column += 1)
      grid.put(column, rowOf(0), style.isUnicode ? '┄' : '-', 'grey');
  const last = chart.bars.at(-1)?.close ?? 0;
  grid.put(width + 1, rowOf(last), `<${shortText(last, 8)}`.padEnd(LONGEST_TEXT + 1), 'bold');
  return position;
}

function placeOf({ low, high }: ValueScale, value: number, places: number): number {
  const share = (high - value) / (high - low);
  return Math.max(0, Math.min(places - 1, Math.round(share * (places - 1))));
}

/** Characters by the upper and the lower half of a row: nothing, wick or body. */
const LIGHT = [' ╷╻', '╵│╽', '╹╿┃'];
/** Falling candles without colour. */
const SOLID = [' ╷▄', '╵│▄', '▀▀█'];

function drawCandles(area: Area): void {
  const { chart, style, grid, stepWidth } = area;
  const position = drawScale(area, 2);
  for (const bar of chart.bars) {
    const column = Math.floor(bar.at * stepWidth);
    const [top, bottom] = [position(bar.high), position(bar.low)];
    const ends = [position(bar.open), position(bar.close)];
    const [bodyTop, bodyBottom] = [Math.min(...ends), Math.max(...ends)];
    const kindOf = (half: number): number =>
      half >= bodyTop && half <= bodyBottom ? 2 : half >= top && half <= bottom ? 1 : 0;
    for (let row = Math.floor(top / 2); row <= Math.floor(bottom / 2); row += 1) {
      const halves = [kindOf(2 * row), kindOf(2 * row + 1)] as const;
      grid.put(column, row, candleCharacter(bar, halves, style), colourOf(bar));
    }
  }
}

function candleCharacter(
  bar: Bar,
  [upper, lower]: readonly [number, number],
  { isUnicode, hasColour }: TextStyle,
): string {
  if (!isUnicode) return Math.max(upper, lower) < 2 ? '|' : isUp(bar) ? 'o' : '#';
  return (hasColour || isUp(bar) ? LIGHT : SOLID)[upper]?.[lower] ?? ' ';
}

function colourOf(bar: Bar): Colour {
  return isUp(bar) ? 'green' : 'red';
}

const EIGHTHS = ' ▁▂▃▄▅▆▇█';

function drawVolumes({ chart, style, grid, stepWidth, width, priceRows, volumeRows }: Area): void {
  if (volumeRows === 0) return;
  const most = Math.max(...chart.bars.map(({ volume }) => volume));
  grid.put(width + 1, priceRows, ` ${amountText(most)}`);
  const parts = style.isUnicode ? 8 : 1;
  for (const bar of chart.bars) {
    if (bar.volume === 0) continue;
    const filledParts = Math.max(1, Math.round((bar.volume / most) * volumeRows * parts));
    for (let up = 0; up * parts < filledParts; up += 1) {
      const share = Math.min(parts, filledParts - up * parts);
      const character = style.isUnicode ? (EIGHTHS[share] ?? '█') : ':';
      grid.put(Math.floor(bar.at * stepWidth), priceRows + volumeRows - 1 - up, character, colourOf(bar));
    }
  }
}

function drawLine(area: Area): void {
  const { chart, style, grid, stepWidth, width, priceRows } = area;
  const position = drawScale(area, 4);
  const dots = new DotCanvas(width * 2, priceRows * 4);
  const columnOf = (bar: Bar): number => Math.floor(bar.at * stepWidth * 2);
  let before: Bar | undefined;
  for (const bar of chart.bars) {
    const x = columnOf(bar);
    dots.line(x, position(bar.high), x, position(bar.low));
    if (before !== undefined && chart.isJoined(before, bar))
      dots.line(columnOf(before), position(before.close), x, position(bar.open));
    before = bar;
  }
  dots.each((column, row, character) => {
    grid.put(column, row, style.isUnicode ? character : '*', 'cyan');
  });
}
