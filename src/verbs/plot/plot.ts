/** `cryptodl plot`: draws a series of the lake on the terminal or as a page. */
import { writeFile } from 'node:fs/promises';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import type { Gap } from '../../lake/catalogue/gap.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { hasColour, writeData, writeText } from '../../terminal/write-data.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import type { ReadList } from '../../plan/options/parsers.js';
import { listReader } from '../../plan/options/symbols.js';
import { nowMsOf, type QueryFlag, type VerbRequest } from '../../plan/options/verb-request.js';
import { readVerbLake, readableStates } from '../../plan/select/held-series.js';
import { DAY_MS, bytesText, listText } from '../../model/units.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { pageFile } from '../../terminal/page-shell.js';
import { absolutePath, lakeFlag, shellWord, shownPath } from '../../text/printable.js';
import { MOST_STEPS, chartHtml, makeChart, type Chart } from './chart.js';
import { chooseDataset, seriesOfSymbol, type PlottedDataset } from './choose-series.js';
import { chartText, plotColumns, type TextStyle } from './draw-text.js';
import { readBars } from './read-bars.js';
import { timeGrid, type TimeRange } from './time-grid.js';
import { gapText } from '../../lake/catalogue/gap-texts.js';
import { dayOf, startOfDay } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import { givenRange } from '../../plan/select/date-range.js';
import { intervalMs } from '../../exchange/exchange-spec.js';

type Flag = QueryFlag | 'column' | 'quiet';

/** The operand is the symbol; it can be left out for a lake with one symbol. */
export async function plot(command: VerbCall<Flag | 'force' | 'html'>): Promise<ExitCode> {
  const { io, operand } = command;
  return withSignals(command, async (request) => {
    const { html, quiet, force } = command.resolved.options;
    const { home } = request.surroundings;
    const page = html === undefined ? undefined : pageFile('plot', absolutePath(html, home), force);
    if (page !== undefined) await refuseForeignFile(page);
    const style = styleOf(io);
    const most = page === undefined ? plotColumns(style.columns) : MOST_STEPS;
    const chart = await chartOf(operand, { ...request, readList: listReader(io) }, most);
    if (page === undefined) {
      await writeText(io, `${chartText(chart, style).join('\n')}\n`);
      return 0;
    }
    const bytes = await writeOwnFile(page, (staged) => writeFile(staged, chartHtml(chart)));
    if (!quiet) await writeData(io, [`wrote ${shownPath(page.path)}: ${bytesText(bytes)}`]);
    return 0;
  });
}

const MOST_COLUMNS = 400;

function styleOf(io: Io): TextStyle {
  const { stdout, environment } = io;
  const sizeOf = (shown: number | undefined, name: 'COLUMNS' | 'LINES', usual: number): number => {
    const size = shown ?? Number(environment[name]);
    return Number.isInteger(size) && size > 0 ? Math.min(size, MOST_COLUMNS) : usual;
  };
  return {
    columns: sizeOf(stdout.columns, 'COLUMNS', 80),
    rows: sizeOf(stdout.rows, 'LINES', 24),
    hasColour: hasColour(io),
  };
}

/** The chart of the chosen series. `most`: its largest number of steps. */
async function chartOf(
  operand: string | undefined,
  request: VerbRequest<Flag> & { readonly readList: ReadList },
  most: number,
): Promise<Chart> {
  const { root, held } = await readVerbLake(request);
  const own = await seriesOfSymbol(held, operand, request.resolved.options, request.readList);
  const chosen = chooseDataset(own, request.resolved, request.exchange);
  const { spec, columns } = chosen;
  // Each interval has gaps of its own. No data file is read.
  const found = await readableStates(root, chosen.series, request);
  const { states, range } = chooseInterval(found.values(), request, chosen);
  const { series, gaps } = states;
  const grid = timeGrid(range, { most, interval: series.interval ?? '', dayStartMs: spec.dayStartMs });
  const shown = { series, spec, columns, grid, range };
  const bars = await readBars(shown, request);
  const column = columns.kind === 'line' ? ` in ${columns.column.name}` : '';
  if (bars.length === 0)
    throw usage(`${series.symbol} has no numbers${column} in this range`, 'choose other days or --column');
  const notes = request.resolved.options.quiet ? [] : missingLines(states, range, root);
  const breaks = gaps.filter(({ isLoose }) => isLoose !== true).map((gap) => timesOf(gap, states));
  return makeChart({ ...shown, bars, breaks, notes });
}

/** In epoch milliseconds. */
function timesOf({ fromSeconds, toSeconds }: Gap, { dayStartSeconds }: SeriesStates): TimeRange {
  return { fromMs: (fromSeconds + dayStartSeconds) * 1000, toMs: (toSeconds + dayStartSeconds) * 1000 };
}

/** Lines about missing rows within the range, and the command that fetches them. */
function missingLines(states: SeriesStates, range: TimeRange, root: string): string[] {
  const within = states.gaps.filter((gap) => {
    const { fromMs, toMs } = timesOf(gap, states);
    return gap.isMissing && fromMs < range.toMs && toMs > range.fromMs;
  });
  if (within.length === 0) return [];
  const { market, dataset, interval, symbol } = states.series;
  const ofInterval = interval === undefined ? [] : ['-i', interval];
  const words = ['-m', market, '--dataset', dataset, ...ofInterval, '-s', symbol].map(shellWord);
  const texts = within.map((gap) => gapText(gap, states));
  return [
    `missing: ${listText(texts, 2)}`,
    `to fetch them: cryptodl repair${lakeFlag(root)} ${words.join(' ')}`,
  ];
}

/** A chart of fewer bars looks empty if a shorter interval has more. */
const ENOUGH_BARS = 100;

/**
 * Of several intervals, those with the newest rows; of these, the longest that fills a chart, because it has the fewest rows to
 * read. Throws a usage error if no interval has rows in the given range.
 */
function chooseInterval(
  found: Iterable<SeriesStates>,
  request: VerbRequest<QueryFlag>,
  { series: [series], spec }: PlottedDataset,
): { readonly states: SeriesStates; readonly range: TimeRange } {
  const { options } = request.resolved;
  const given = givenRange(options, nowMsOf(request), request.exchange);
  const firstMs = given?.from === undefined ? -Infinity : startOfDay(given.from, spec);
  const endMs = given === undefined ? Infinity : startOfDay(given.to, spec);
  const within = [...found].flatMap((states) => {
    // A series of zips has no rows that a query reads.
    if (states.firstInstant === undefined || states.lastInstant === undefined) return [];
    const range = {
      fromMs: Math.max(Date.parse(states.firstInstant), firstMs),
      toMs: Math.min(Date.parse(states.lastInstant) + 1, endMs),
    };
    return range.fromMs < range.toMs ? [{ states, range, lengthMs: lengthOf(states.series) }] : [];
  });
  const newest = Math.max(...within.map(({ range }) => dayOf(range.toMs - 1, spec)));
  const ranked = within
    .filter(({ range }) => dayOf(range.toMs - 1, spec) === newest)
    .sort((a, b) => b.lengthMs - a.lengthMs);
  const best = ranked.find(
    ({ range: { fromMs, toMs }, lengthMs }) => (toMs - fromMs) / lengthMs >= ENOUGH_BARS,
  );
  const chosen = best ?? ranked.at(-1);
  if (chosen !== undefined) return chosen;
  const inRange = given === undefined ? '' : ` in ${given.text}`;
  throw usage(
    `${options.out} holds no Parquet or CSV rows of ${series?.symbol} ${series?.market} ${series?.dataset}${inRange}`,
    'cryptodl coverage shows what the lake holds',
  );
}

/** The length of an interval in milliseconds. Intervals above a day have no fixed length, and are compared by their usual one. */
function lengthOf({ interval = '1s' }: Series): number {
  const usual: Readonly<Record<string, number>> = { '1w': 7, '1mo': 30, '1M': 30 };
  return (usual[interval] ?? 0) * DAY_MS || intervalMs(interval) || 1000;
}
