/** `cryptodl coverage`: compares the held rows of a lake with the expected rows. Reads no data file and sends no request. */
import { correctedLine } from '../cli/print-error.js';
import { writeData, writeText } from '../cli/write-data.js';
import { dayOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import { exitCodeOfCoverage } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { FORMATS, seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { surroundingsOf } from '../options/environment.js';
import { flagsOf, flagSpec } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { Resolved } from '../options/resolve.js';
import { readLists, readPatterns } from '../options/symbols.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import type { Range } from '../select/date-range.js';
import { heldSeries, filterHeldSeries, refuseFormat } from '../select/held-series.js';
import type { Source } from '../source/source.js';
import { findDataset, isArchived } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { absolutePath, printLines } from '../text/printable.js';
import { coverLake } from './cover-lake.js';
import type { CoveredSeries, FoundHalt } from './cover-lake.js';
import { percentOf } from './gaps.js';
import type { CoveragePeriod } from './gaps.js';
import { createCoverageText, CSV_HEAD, csvLines, instant, seriesRecord } from './print-coverage.js';
import { percentText } from './series-table.js';

export interface CoverageRun {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly io: Io;
}

/** Counts over all series, for the summary and the exit code. */
interface CoverageCounts {
  /** The reasons why folders that look like series were left out, one text each. */
  readonly skipped: readonly string[];
  readonly refused: CryptodlError[];
  readonly halts: FoundHalt[];
  /** Series below `--min`, with their percentage. */
  readonly below: string[];
  series: number;
  incomplete: number;
  /** Series that lack data for a reason other than `not-fetched`. The other incomplete series lack only data before or after their rows. */
  broken: number;
  /** The verb that downloads the missing days if no series is `broken`. */
  continuing: Verb;
  leastPercent: number | null;
}

/** Ranges of more days are shown by month. */
const MOST_DAYS = 60;
const MOST_NAMED = 5;

/** Resolves with 1 when a manifest or one of its lines cannot be read, else with 4 when a series is below `--min`. */
export async function coverage(run: CoverageRun): Promise<ExitCode> {
  const { source: venue, io, resolved } = run;
  const { options, origins } = resolved;
  if (options.json && options.csv)
    throw usage('--json and --csv exclude each other', 'keep one', { flags: { csv: null } });
  const nowMs = options.nowMs ?? io.clock.now();
  const range = isRangeGiven(options) ? resolveRange(options, nowMs, venue) : undefined;
  const root = absolutePath(options.out, surroundingsOf(io.environment).home);
  const held: Series[] = [];
  const skipped: string[] = [];
  const skip = (message: string): void => {
    skipped.push(message);
    printLines(io.stderr, [`warning: ${message}`]);
  };
  for await (const series of heldSeries(root, venue, skip)) held.push(series);
  const patterns =
    options.symbols === undefined ? undefined : await readPatterns(options.symbols, readLists(io));
  const chosen = filterHeldSeries(held, resolved, patterns);
  const isFormatGiven = origins.format !== 'default';
  if (isFormatGiven) await refuseFormat(options.format, chosen, { root, venue, out: options.out });
  const found: CoverageCounts = {
    skipped,
    refused: [],
    halts: [],
    below: [],
    series: 0,
    incomplete: 0,
    broken: 0,
    continuing: 'vision',
    leastPercent: null,
  };
  const covered = coverLake({
    root,
    venue,
    held,
    chosen,
    formats: isFormatGiven ? [options.format] : FORMATS,
    range: range ?? {},
    today: dayOf(nowMs, venue),
    halts: venue.halts(),
    onRefused: (error) => found.refused.push(error),
    onHalt: (halt) => found.halts.push(halt),
  });
  await write(run, counted(covered, found, { min: options.minPercent, venue }), found, range);
  return conclude(run, found);
}

async function* counted(
  covered: AsyncIterable<CoveredSeries>,
  found: CoverageCounts,
  { min, venue }: { readonly min: number | undefined; readonly venue: Venue },
): AsyncGenerator<CoveredSeries> {
  for await (const series of covered) {
    const percent = percentOf(series);
    found.series += 1;
    if (series.missing > 0) found.incomplete += 1;
    const { market, dataset } = series.coverage.series;
    const spec = findDataset(venue, market, dataset);
    if (series.missing > 0 && spec !== undefined && !isArchived(spec)) found.continuing = 'metrics';
    if (series.gaps.some(({ isMissing, reason }) => isMissing && reason !== 'not-fetched')) found.broken += 1;
    if (percent !== undefined) {
      found.leastPercent = Math.min(found.leastPercent ?? 100, percent);
      if (min !== undefined && percent < min)
        found.below.push(`${seriesName(series.coverage.series)} (${percentText(series)})`);
    }
    yield series;
  }
}

async function write(
  { io, resolved }: CoverageRun,
  covered: AsyncIterable<CoveredSeries>,
  found: CoverageCounts,
  range: Range | undefined,
): Promise<void> {
  const { options } = resolved;
  const chosen = options.by === 'auto' ? undefined : options.by;
  const periodOf = ({ coverage: { from, to } }: CoveredSeries): CoveragePeriod =>
    chosen ?? (to - (range?.from ?? from) <= MOST_DAYS ? 'day' : 'month');
  if (options.json) {
    for await (const one of covered) {
      const record = seriesRecord(one.coverage, one.gaps, one, periodOf(one));
      if (!(await writeData(io, [record]))) return;
    }
    await writeData(io, [summaryOf(found)]);
  } else if (options.csv) {
    if (!(await writeData(io, [CSV_HEAD]))) return;
    for await (const one of covered)
      if (!(await writeData(io, csvLines(one.coverage, one.gaps, periodOf(one))))) return;
  } else {
    const text = createCoverageText(io, chosen, MOST_DAYS);
    for await (const one of covered) if (!(await writeText(io, text.add(one)))) return;
    await writeText(io, text.end(found.halts));
  }
}

function summaryOf({
  skipped,
  refused,
  halts,
  below,
  series,
  incomplete,
  leastPercent: least,
}: CoverageCounts): object {
  return {
    event: 'summary',
    series,
    incomplete,
    below: below.length,
    leastPercent: least === null ? null : Math.floor(least * 10_000) / 10_000,
    halts: halts.map(({ from, to, ...of }) => ({ ...of, from: instant(from), to: instant(to) })),
    refused: refused.map(({ message }) => message),
    ...(skipped.length === 0 ? {} : { skipped }),
  };
}

/** Prints faults and the next step on stderr. */
function conclude(
  { io, resolved }: CoverageRun,
  { refused, below, incomplete, broken, continuing }: CoverageCounts,
): ExitCode {
  const say = (line: string): void => {
    printLines(io.stderr, [line]);
  };
  const { options } = resolved;
  for (const { message, hint } of refused.slice(0, MOST_NAMED * 2)) {
    say(`cryptodl: ${message}`);
    if (hint !== undefined) say(`  ${hint}`);
  }
  if (refused.length > MOST_NAMED * 2)
    say(`cryptodl: ${refused.length - MOST_NAMED * 2} more manifests or lines cannot be read`);
  if (below.length > 0) {
    const more = below.length > MOST_NAMED ? ` and ${below.length - MOST_NAMED} more` : '';
    say(`below --min ${options.minPercent ?? 0} %: ${below.slice(0, MOST_NAMED).join(', ')}${more}`);
  }
  if (incomplete > 0 && !options.json && !options.csv) {
    // `repair` fills gaps between held days; missing days before or after them need a download verb.
    const selection = selectionOf(resolved).filter((_, i, words) => broken > 0 || !isSymbols(words, i));
    say(`next: ${correctedLine([broken > 0 ? 'repair' : continuing, ...selection], {})}`);
  }
  return exitCodeOfCoverage({ below: below.length, refused: refused.length });
}

/** A download without `--symbols` continues the series of the lake, so the suggested download has no `--symbols`. */
function isSymbols(words: readonly string[], index: number): boolean {
  return words[index] === '--symbols' || words[index - 1] === '--symbols';
}

/** The given selection flags that `repair` takes too. */
function selectionOf({ texts }: Resolved): string[] {
  const names = ['out', 'market', 'dataset', 'interval', 'symbols', 'quote', 'format'] as const;
  const range = ['days', 'months', 'from', 'to', 'now'] as const;
  const known = flagsOf('repair');
  return [...names, ...range].flatMap((name) => {
    const values = texts[name];
    if (values === undefined || !known.includes(name)) return [];
    // For a flag that takes one value, the last one counts.
    const given = flagSpec(name).list === undefined ? values.slice(-1) : values;
    return [`--${name}`, given.join(',')];
  });
}
