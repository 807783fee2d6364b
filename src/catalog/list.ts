/** `cryptodl list markets|datasets|symbols|periods`: prints one item per line. */
import { endLookUp, openLookUp, asUnreachable } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { LISTS } from '../cli/verbs.js';
import { writeData } from '../cli/write-data.js';
import type { Session } from '../download/session.js';
import { dayText, periodText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import type { Market } from '../model/task.js';
import { bytesText, numberText } from '../model/units.js';
import { surroundingsOf } from '../options/environment.js';
import { readLists, readPatterns } from '../options/symbols.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import { chooseDatasets, marketsOf } from '../select/select-datasets.js';
import type { ChosenDataset } from '../select/select-datasets.js';
import { endedText, reachText } from '../source/describe.js';
import { publicationHours, publicationText } from '../source/publication-hours.js';
import { datasetsOf, intervalsOf, isArchived, marketNames } from '../source/venue.js';
import type { DatasetSpec, Venue } from '../source/venue.js';
import { didYouMean, nearest } from '../text/did-you-mean.js';
import { printLines, tabbed } from '../text/printable.js';
import { ALWAYS, listPeriods, listSymbols } from './list-archive.js';

/** One printed item: cells for text, fields for `--json`. */
interface Item {
  readonly cells: readonly (string | number)[];
  readonly fields: object;
}

/** `operand`: `markets`, `datasets`, `symbols` or `periods`. Throws usage errors. */
export async function list(operand: string | undefined, run: LookUp): Promise<ExitCode> {
  const name = LISTS.find((candidate) => candidate === operand);
  if (name === undefined) throw refuseName(operand);
  const { options } = run.resolved;
  if (name === 'markets') return print(run, [...markets(run.source)], 'markets');
  if (name === 'datasets') return print(run, await datasets(run), 'datasets');
  const chosen = chooseDatasets(run.source, options);
  if (name === 'symbols') return withSession(run, (session) => symbols(run, session, chosen));
  const { symbols: given } = options;
  if (given === undefined)
    throw usage('list periods needs --symbols', "--symbols BTCUSDT or --symbols '*USDT'", {
      flags: { symbols: 'BTCUSDT' },
    });
  return withSession(run, async (session) =>
    periods(run, session, chosen, await readPatterns(given, readLists(run.io))),
  );
}

function refuseName(what: string | undefined): Error {
  const known = LISTS.join(', ');
  if (what === undefined)
    return usage(`list needs one of ${known}`, undefined, { command: ['list', 'datasets'] });
  const near = nearest(what, LISTS);
  return usage(`list: "${what}" is not one of ${known}`, didYouMean(what, LISTS), {
    operand: near ?? 'datasets',
  });
}

function* markets(venue: Venue): Generator<Item> {
  for (const [market, { title, datasets: has }] of Object.entries(venue.markets)) {
    const names = Object.keys(has);
    yield { cells: [market, title, names.join(',')], fields: { market, title, datasets: names } };
  }
}

/** Datasets of the markets of `--market`, else of all markets. */
async function datasets({ source, resolved: { options, origins }, io }: LookUp): Promise<Item[]> {
  const items: Item[] = [];
  const hoursOf = publicationHours({
    options,
    surroundings: surroundingsOf(io.environment),
    source,
    clock: io.clock,
    warn: (message) => {
      printLines(io.stderr, [`warning: ${message}`]);
    },
  });
  for (const market of origins.market === 'default' ? marketNames(source) : marketsOf(source, options)) {
    for (const spec of datasetsOf(source, market)) {
      const intervals = intervalsOf(spec) ?? ['-'];
      const sources = [...spec.cadences, ...(spec.rest === undefined ? [] : ['rest'])].join(',');
      const span = spanText(source, market, spec);
      const cells = [spec.name, market, sources, span, intervals.join(','), spec.title];
      const published = await hoursOf(market, spec);
      if (published !== undefined) cells.push(publicationText(published));
      const fields = { ...datasetFields(market, spec), ...(published === undefined ? {} : { published }) };
      items.push({ cells, fields });
    }
  }
  return items;
}

function spanText(venue: Venue, market: Market, spec: DatasetSpec): string {
  if (!isArchived(spec)) return reachText(venue, market, spec);
  const { first, last } = spec.spans[spec.cadences[0] ?? 'daily'] ?? {};
  const end = spec.removed ? 'removed' : last === undefined ? 'now' : periodText(last);
  return `${first === undefined ? '?' : periodText(first)}…${end}`;
}

function datasetFields(market: string, spec: DatasetSpec): object {
  const spans = Object.fromEntries(
    spec.cadences.map((cadence) => {
      const { first, last } = spec.spans[cadence] ?? {};
      return [
        cadence,
        {
          first: first === undefined ? null : periodText(first),
          last: last === undefined ? null : periodText(last),
        },
      ];
    }),
  );
  return {
    dataset: spec.name,
    market,
    title: spec.title,
    cadences: spans,
    rest: spec.rest !== undefined,
    intervals: intervalsOf(spec) ?? [],
    partition: spec.partition,
    removed: spec.removed,
  };
}

async function symbols(run: LookUp, session: Session, chosen: readonly ChosenDataset[]): Promise<ExitCode> {
  const { options } = run.resolved;
  const patterns =
    options.symbols === undefined ? undefined : await readPatterns(options.symbols, readLists(run.io));
  const found = listSymbols(session, chosen, patterns, options.long);
  const items = map(found, ({ symbol, extent }): Item => {
    if (extent === undefined) return { cells: [symbol], fields: { symbol } };
    const { first, last, objects, bytes } = extent;
    return {
      cells: [symbol, first ?? '-', last ?? '-', objects, bytes],
      fields: { symbol, first: first ?? null, last: last ?? null, objects, bytes },
    };
  });
  return print(run, items, 'symbols');
}

async function periods(
  run: LookUp,
  session: Session,
  chosen: readonly ChosenDataset[],
  patterns: SymbolPatterns,
): Promise<ExitCode> {
  const { options } = run.resolved;
  const range = isRangeGiven(options) ? resolveRange(options, session.nowMs, session.venue) : ALWAYS;
  let bytes = 0;
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
  const items = map(listPeriods(session, chosen, patterns, range), ({ series, object }): Item => {
    const { period, key } = object;
    bytes += object.bytes ?? 0;
    first = Math.min(first, period.from);
    last = Math.max(last, period.to);
    const text = periodText(period);
    return {
      cells: [text, period.cadence, object.bytes ?? 0, key],
      fields: { ...series, cadence: period.cadence, ...object, period: text },
    };
  });
  const ends = chosen.flatMap(({ market, spec }) => endedText(session.venue, market, spec.name) ?? []);
  return print(run, items, 'objects', () => [
    ...(last > 0 ? [`${dayText(first)} … ${dayText(last - 1)}, ${bytesText(bytes)}`] : []),
    ...new Set(ends),
  ]);
}

/** Prints the items to stdout (markets and datasets on a terminal in aligned columns). Prints their number and `more` to stderr. */
async function print(
  run: LookUp,
  items: Iterable<Item> | AsyncIterable<Item>,
  what: string,
  more: () => readonly string[] = () => [],
): Promise<ExitCode> {
  const { io, resolved } = run;
  const isTable = io.stdout.isTTY === true && Array.isArray(items);
  const widths = isTable ? widthsOf(items as Item[]) : [];
  let number = 0;
  for await (const { cells, fields } of items) {
    number += 1;
    const text = isTable
      ? cells
          .map((cell, at) => String(cell).padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd()
      : tabbed(cells);
    if (!(await writeData(io, [resolved.options.json ? fields : text]))) return 0;
  }
  const count = `${numberText(number)} ${number === 1 ? what.slice(0, -1) : what}`;
  if (!resolved.options.quiet) printLines(io.stderr, [[count, ...more()].join('; ')]);
  return 0;
}

function widthsOf(items: readonly Item[]): number[] {
  const columns = items[0]?.cells.length ?? 0;
  return Array.from({ length: columns }, (_, at) =>
    Math.max(...items.map(({ cells }) => String(cells[at] ?? '').length)),
  );
}

async function* map<T>(items: AsyncIterable<T>, to: (item: T) => Item): AsyncGenerator<Item> {
  for await (const item of items) yield to(item);
}

async function withSession(run: LookUp, act: (session: Session) => Promise<ExitCode>): Promise<ExitCode> {
  const signals = watchSignals(run.io);
  const session = openLookUp(run, signals);
  try {
    await session.refuseBanned('list');
    return await act(session);
  } catch (error) {
    return endLookUp(asUnreachable(error), run, signals);
  } finally {
    signals.release();
    await session.close();
  }
}
