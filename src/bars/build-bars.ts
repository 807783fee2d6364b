/** Builds bars into the lake, symbol by symbol and month by month. Sends no request. */
import { join } from 'node:path';
import { openCatalogue } from '../catalogue/catalogue.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import { createEngine } from '../convert/duckdb.js';
import type { DuckDbSession, Engine } from '../convert/duckdb.js';
import { openLake } from '../download/open-lake.js';
import { openSession } from '../download/session.js';
import type { LakeParts, Session } from '../download/session.js';
import { releaseBacked } from '../lake/backing.js';
import { commitFiles } from '../lake/commit-journal.js';
import { removeRunFolder, seriesFolder } from '../lake/layout.js';
import { writeNotice } from '../lake/notice.js';
import { fileSize, removeStaged } from '../lake/publish.js';
import { dayText, monthOf } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { listText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { BarRule } from './bar-rule.js';
import { UnreadableSource } from './make-bars.js';
import { lostDays, makeMonth } from './make-month.js';
import type { BarTarget, MadeMonth } from './make-month.js';
import { planMonths } from './plan-months.js';
import type { BarMonth, Recipe } from './plan-months.js';
import {
  canMake,
  chosenMonths,
  chooseSource,
  missingDays,
  noSourceText,
  selectSymbols,
  sourceName,
  sourceOf,
} from './source.js';
import type { BarSource, SymbolSeries } from './source.js';

/** What was made, of one symbol or of all. */
interface Amounts {
  /** Days of the months that are made. */
  readonly days: number;
  /** Bars of these months, and bars that lack rows of the source or are absent for that reason. Both are 0 with --dry-run. */
  readonly bars: number;
  readonly short: number;
  /** Days between the first and the last day of the source, in months of the range, that the source does not have. They have no bars. */
  readonly missingDays: number;
  readonly bytes: number;
}

/** The result for a series of bars. */
interface Built extends Amounts {
  /**
   * `made`, or with --dry-run what would be made; `skipped`: the bars of the lake are up to date; `empty`: the source has no whole bar in
   * the range.
   */
  readonly outcome: 'made' | 'skipped' | 'empty' | 'failed';
  /** Why it failed, or why there is nothing to make. */
  readonly text?: string;
  /** `klines 1m` */
  readonly source?: string;
  readonly months: readonly string[];
}

export type BuiltSeries = Series & Built;

export interface BuildSummary extends Readonly<Record<Built['outcome'], number>>, Amounts {
  readonly months: number;
  readonly exitCode: ExitCode;
}

const AMOUNTS = ['days', 'bars', 'short', 'missingDays', 'bytes'] as const;
const NOTHING = { months: [], days: 0, bars: 0, short: 0, missingDays: 0, bytes: 0 };

interface Build {
  readonly rule: BarRule;
  readonly session: Session & Partial<LakeParts>;
  /** Whether a month is in the range of the command. */
  readonly isChosen: (month: number) => boolean;
  readonly catalogue: Catalogue;
  /** Undefined with --dry-run. */
  readonly engine: DuckDbSession | undefined;
  readonly onMonth: () => void;
}

/**
 * Yields each symbol in the order of the lake. Rejects with usage errors, with `locked` while another run writes, and with errors of the
 * disk. `onMonth` is called for each month that is made.
 */
export async function* buildBars(
  rule: BarRule,
  request: VerbRequest,
  onMonth: () => void = () => undefined,
): AsyncGenerator<BuiltSeries, BuildSummary> {
  const session = openSession(request);
  const { options, paths, stop, venue } = session;
  let opened: LakeParts | undefined;
  let engine: Engine | undefined;
  try {
    const symbols = await selectSymbols(rule, request);
    if (!options.dryRun) {
      opened = await openLake(session, 'cryptodl bars');
      engine = createEngine({ tempFolder: opened.runFolder, signal: stop.signal });
    }
    const build = {
      rule,
      session: { ...session, ...opened },
      isChosen: chosenMonths(request),
      catalogue: openCatalogue(paths.root, venue, stop.signal),
      engine: await engine?.session(),
      onMonth,
    };
    const summary = yield* buildAll(build, symbols);
    if (opened !== undefined && summary.months > 0 && venue.terms !== undefined)
      await writeNotice(paths, venue.terms.notice);
    return summary;
  } catch (error) {
    // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
    stop.signal.throwIfAborted();
    throw error;
  } finally {
    engine?.close();
    await session.close();
    if (opened !== undefined) await closeLake(session, opened);
  }
}

async function closeLake({ paths }: Session, { lock, runFolder }: LakeParts): Promise<void> {
  try {
    await removeRunFolder(paths, runFolder);
  } finally {
    await lock.release();
  }
}

async function* buildAll(
  build: Build,
  symbols: readonly SymbolSeries[],
): AsyncGenerator<BuiltSeries, BuildSummary> {
  const counts = { made: 0, skipped: 0, empty: 0, failed: 0, ...NOTHING, months: 0 };
  for (const symbol of symbols) {
    build.session.stop.signal.throwIfAborted();
    const built = await buildSymbol(build, symbol);
    counts[built.outcome] += 1;
    counts.months += built.months.length;
    for (const name of AMOUNTS) counts[name] += built[name];
    yield built;
  }
  return { ...counts, exitCode: counts.failed > 0 ? 4 : 0 };
}

async function buildSymbol(build: Build, { bars, spec, held: all }: SymbolSeries): Promise<BuiltSeries> {
  const { catalogue, rule, session } = build;
  const failed = (text: string): BuiltSeries => ({ ...bars, ...NOTHING, outcome: 'failed', text });
  const sources = all.filter((series) => canMake(rule, series));
  if (sources.length === 0) return failed(noSourceText(rule, all));
  const usable: BarSource[] = [];
  let isEmpty = true;
  for await (const held of catalogue.series(sources)) {
    const source = sourceOf(held);
    isEmpty = false;
    if (source !== undefined) usable.push(source);
  }
  if (isEmpty) return { ...bars, ...NOTHING, outcome: 'empty', text: 'the lake has no rows of its source' };
  try {
    const folder = join(session.paths.root, seriesFolder(session.venue.name, bars));
    const { parquet: held } = await session.manifests.of(folder);
    const source = chooseSource(usable, held);
    if (source === undefined) return failed(`${sources.map(seriesName).join(', ')}: no files`);
    // A candle without trades is a row of klines, so klines have nothing to fill.
    const isFilled = session.options.fillEmpty && source.series.dataset !== 'klines';
    // The newest line names the source, so a line is newer than the lines before it.
    const nowMs = held
      .lines()
      .reduce((most, { at }) => Math.max(most, Date.parse(at) + 1), session.clock.now());
    const target = { series: bars, spec, folder, held, nowMs };
    return { ...bars, ...(await buildSeries(build, { rule, source, isFilled }, target)) };
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
    return failed(error.message);
  }
}

/** Makes the months that are not up to date. Rejects with errors of the disk, and when interrupted. */
async function buildSeries(build: Build, recipe: Recipe, target: BarTarget): Promise<Built> {
  const { rule, source } = recipe;
  const name = sourceName(source.series);
  if (source.fault !== undefined)
    return { ...NOTHING, source: name, outcome: 'failed', text: `${name}: ${source.fault}` };
  const all = planMonths(recipe);
  const missing = missingDays(source).filter((day) => build.isChosen(monthOf(day)));
  const of = { source: name, missingDays: missing.length };
  const months = await monthsToMake(build, all, name, target);
  const text = build.session.options.force ? undefined : lossProblem(months, name, target);
  if (text !== undefined) return { ...NOTHING, ...of, outcome: 'failed', text };
  if (months.length > 0) return { ...(await makeMonths(build, target, recipe, months)), ...of };
  if (all.some(({ month }) => build.isChosen(month))) return { ...NOTHING, ...of, outcome: 'skipped' };
  const span = `${dayText(source.from)} … ${dayText(source.to - 1)}`;
  return {
    ...NOTHING,
    ...of,
    outcome: 'empty',
    text: `no bar of ${rule.interval} of the range lies within ${span}, the days of ${name}`,
  };
}

/** The months whose file is not there with its size, or was made from something else. A change of the source concerns months outside of the range too. */
async function monthsToMake(
  { isChosen, session }: Build,
  all: readonly BarMonth[],
  source: string,
  { held, folder }: BarTarget,
): Promise<BarMonth[]> {
  const months: BarMonth[] = [];
  for (const month of all) {
    const last = held.inFile(month.file).length === 0 ? undefined : held.lastOfFile(month.file);
    const isUpToDate =
      last?.sha256 === month.sha256 && (await fileSize(join(folder, month.file))) === last.fileBytes;
    const isConcerned = isChosen(month.month) || (last !== undefined && last.source !== source);
    if (isConcerned && (session.options.force || !isUpToDate)) months.push(month);
  }
  return months;
}

/** Why months are not made again: a month is made as a whole, and would lose days that the source no longer has. */
function lossProblem(months: readonly BarMonth[], source: string, target: BarTarget): string | undefined {
  const lost = months.flatMap((month) => lostDays(target, month)).map(({ period }) => period);
  if (lost.length === 0) return undefined;
  return `its bars have days that ${source} does not have: ${listText(lost.sort())}; --force makes their months again without them`;
}

/** Months of one commit. The months of bars from trades take long, so each is a commit of its own. */
const MONTHS_IN_COMMIT = 16;

async function makeMonths(
  { catalogue, engine, onMonth, session }: Build,
  target: BarTarget,
  recipe: Recipe,
  months: readonly BarMonth[],
): Promise<Built> {
  if (engine === undefined) return { ...sumOf(months), outcome: 'made' };
  const { manifests, paths, stop, venue } = session;
  const { dataset } = recipe.source.series;
  const step = dataset === 'klines' ? MONTHS_IN_COMMIT : 1;
  const made: MadeMonth[] = [];
  let failure: string | undefined;
  for (let at = 0; at < months.length; at += step) {
    const some: MadeMonth[] = [];
    try {
      for (const month of months.slice(at, at + step)) {
        stop.signal.throwIfAborted();
        const one = await makeMonth({ engine, catalogue, venue, paths }, target, recipe, month);
        onMonth();
        if (one !== undefined) some.push(one);
      }
    } catch (error) {
      await removeStaged(some);
      if (!(error instanceof UnreadableSource)) throw error;
      failure = error.message;
      break;
    }
    await commit(session, target, some);
    made.push(...some);
  }
  await manifests.published(target.folder);
  await releaseBacked(join(paths.root, seriesFolder(venue.name, recipe.source.series)), target.folder);
  const sums = sumOf(made);
  if (failure !== undefined) return { ...sums, outcome: 'failed', text: failure };
  return { ...sums, outcome: made.length > 0 ? 'made' : 'skipped' };
}

function sumOf(
  made: readonly (Pick<MadeMonth, 'label' | 'days'> & Partial<Pick<MadeMonth, 'bars' | 'short' | 'bytes'>>)[],
): Omit<Built, 'outcome'> {
  const sums = { ...NOTHING, months: made.map(({ label }) => label) };
  for (const { days, bars = 0, short = 0, bytes = 0 } of made) {
    sums.days += days.length;
    sums.bars += bars;
    sums.short += short;
    sums.bytes += bytes;
  }
  return sums;
}

async function commit(
  { lock, manifests, paths, venue }: Build['session'],
  { folder, series }: BarTarget,
  made: readonly MadeMonth[],
): Promise<void> {
  if (made.length === 0) return;
  await lock?.confirm();
  // Checked again: a symbolic link may have replaced a folder since the rows were read.
  await paths.folder(seriesFolder(venue.name, series));
  await commitFiles(
    { paths, manifests },
    { seriesFolder: folder, publications: made, dead: [], lines: made.flatMap(({ lines }) => lines) },
  );
}
