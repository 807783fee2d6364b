/** Builds bars into the lake, symbol by symbol and month by month. Sends no request. */
import { join } from 'node:path';
import { createEngine } from '../convert/duckdb.js';
import { tempFolderOf } from '../files/temp-files.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { Deadline } from '../download/deadline.js';
import { openLake } from '../download/open-lake.js';
import type { LakeParts } from '../download/session.js';
import { releaseBacked } from '../lake/backing.js';
import { commitFiles } from '../lake/commit-journal.js';
import { lakePaths, removeRunFolder, seriesFolder } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import { Manifests } from '../lake/manifests.js';
import { writeNotice } from '../lake/notice.js';
import { removeStaged } from '../lake/publish.js';
import { CryptodlError } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { FileDigests } from '../catalogue/file-digests.js';
import { StageTimes } from '../report/stage-times.js';
import { absolutePath } from '../text/printable.js';
import type { BarRule } from './bar-rule.js';
import type { Chosen } from './choose-source.js';
import { UnreadableSource } from './make-bars.js';
import { makeMonth } from './make-month.js';
import type { MadeMonth, MonthContext } from './make-month.js';
import type { BarMonth } from './plan-months.js';
import { planSeries } from './plan-series.js';
import { selectSymbols } from './select-symbols.js';
import type { SymbolSeries } from './select-symbols.js';

/** The result for one symbol. */
export interface BuiltSeries extends Series {
  /**
   * `made`, or with --dry-run what would be made; `skipped`: the bars of the lake are up to date; `empty`: the source has no rows in the
   * range, or less than one bar.
   */
  readonly outcome: 'made' | 'skipped' | 'empty' | 'failed';
  /** Why it failed, or why there is nothing to make. */
  readonly text?: string;
  /** `klines 1m` */
  readonly source?: string;
  readonly months: readonly string[];
  /** New and changed days, their bars, and bars that lack rows of the source or are absent for that reason. The last two are 0 with --dry-run. */
  readonly days: number;
  readonly bars: number;
  readonly short: number;
  /** Days of the range between the first and the last day of the source that the source does not have. They have no bars. */
  readonly missingDays: number;
  readonly bytes: number;
}

export interface BuildSummary {
  readonly made: number;
  readonly skipped: number;
  readonly empty: number;
  readonly failed: number;
  readonly months: number;
  readonly days: number;
  readonly bars: number;
  readonly short: number;
  readonly missingDays: number;
  readonly bytes: number;
  readonly exitCode: ExitCode;
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
  const { options } = request.resolved;
  const paths = lakePaths(absolutePath(options.out, request.surroundings.home));
  const symbols = await selectSymbols(rule, request);
  const build = new Build(rule, request, paths, onMonth);
  if (!options.dryRun) await build.open();
  try {
    for (const symbol of symbols) yield await build.symbol(symbol);
    return await build.summary();
  } catch (error) {
    // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
    build.throwIfStopped();
    throw error;
  } finally {
    await build.close();
  }
}

/** Months of one commit. The months of bars from trades take long, so each is a commit of its own. */
const MONTHS_IN_COMMIT = 16;

class Build {
  readonly #rule: BarRule;
  readonly #request: VerbRequest;
  readonly #paths: LakePaths;
  readonly #onMonth: () => void;
  readonly #stop = new AbortController();
  readonly #digests: FileDigests;
  readonly #counts = {
    made: 0,
    skipped: 0,
    empty: 0,
    failed: 0,
    months: 0,
    days: 0,
    bars: 0,
    short: 0,
    missingDays: 0,
    bytes: 0,
  };
  #manifests: Manifests;
  #opened: LakeParts | undefined;
  #session: DuckDbSession | undefined;
  #closeEngine: () => void = () => undefined;

  constructor(rule: BarRule, request: VerbRequest, paths: LakePaths, onMonth: () => void) {
    this.#rule = rule;
    this.#request = request;
    this.#paths = paths;
    this.#onMonth = onMonth;
    this.#digests = new FileDigests(paths.root, this.#signal);
    this.#manifests = new Manifests(request.source.archive);
  }

  async open(): Promise<void> {
    const { clock, observer, resolved, source, surroundings } = this.#request;
    const stop = this.#stop;
    const session = {
      paths: this.#paths,
      tempFolder: tempFolderOf(resolved.options.tempDir, surroundings.home),
      clock,
      observer,
      options: resolved.options,
      venue: source,
      stop,
      times: new StageTimes(clock),
      deadline: new Deadline({ clock, maxDurationMs: undefined, stop }),
    };
    this.#opened = await openLake(session, 'cryptodl bars');
    this.#manifests = this.#opened.manifests;
    const engine = createEngine({ tempFolder: this.#opened.runFolder, signal: this.#signal });
    this.#closeEngine = () => {
      engine.close();
    };
    this.#session = await engine.session();
  }

  async close(): Promise<void> {
    this.#session?.close();
    this.#closeEngine();
    if (this.#opened === undefined) return;
    const { lock, runFolder: folder } = this.#opened;
    try {
      await removeRunFolder(this.#paths, folder);
    } finally {
      await lock.release();
    }
  }

  get #signal(): AbortSignal {
    return AbortSignal.any([this.#request.signal, this.#stop.signal]);
  }

  /** Throws the error that stopped the command. */
  throwIfStopped(): void {
    this.#signal.throwIfAborted();
  }

  async symbol(symbol: SymbolSeries): Promise<BuiltSeries> {
    this.throwIfStopped();
    const built = await this.#build(symbol);
    this.#counts[built.outcome] += 1;
    this.#counts.months += built.months.length;
    for (const name of ['days', 'bars', 'short', 'missingDays', 'bytes'] as const)
      this.#counts[name] += built[name];
    return built;
  }

  async #build({ bars, spec, sources, problem }: SymbolSeries): Promise<BuiltSeries> {
    const of = { ...bars, months: [], days: 0, bars: 0, short: 0, missingDays: 0, bytes: 0 };
    if (problem !== undefined) return { ...of, outcome: 'failed', text: problem };
    const { source: venue } = this.#request;
    const { root } = this.#paths;
    const folder = join(root, seriesFolder(venue.name, bars));
    try {
      const held = (await this.#manifests.of(folder)).parquet;
      const context = { rule: this.#rule, request: this.#request, root, held, folder };
      const plan = await planSeries(context, { sources });
      const { outcome, missingDays, source } = plan;
      const named = { ...of, ...(source === undefined ? {} : { source }), missingDays };
      if (outcome !== 'made')
        return { ...named, outcome, ...(plan.text === undefined ? {} : { text: plan.text }) };
      const { chosen, months, settings } = plan;
      const session = this.#session;
      if (session === undefined) return plannedSeries(named, months);
      // The newest line names the source, so a line is newer than the lines before it.
      const nowMs = held
        .lines()
        .reduce((most, { at }) => Math.max(most, Date.parse(at) + 1), this.#request.clock.now());
      const places = { venue, paths: this.#paths, folder, series: bars, spec };
      const tools = { session, digests: this.#digests };
      const month = { ...places, ...tools, settings, held, nowMs, signal: this.#signal };
      return await this.#make(named, month, chosen, months);
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
      return { ...of, outcome: 'failed', text: error.message };
    }
  }

  async #make(
    of: Omit<BuiltSeries, 'outcome'>,
    context: MonthContext,
    { recipe }: Chosen,
    months: readonly BarMonth[],
  ): Promise<BuiltSeries> {
    const most = recipe.source.series.dataset === 'klines' ? MONTHS_IN_COMMIT : 1;
    const made: MadeMonth[] = [];
    let open: MadeMonth[] = [];
    let failure: UnreadableSource | undefined;
    const commit = async (): Promise<void> => {
      const ready = open;
      open = [];
      await this.#commit(context, ready);
      made.push(...ready);
    };
    try {
      for (const month of months) {
        this.#signal.throwIfAborted();
        const one = await makeMonth(context, recipe, month);
        this.#onMonth();
        if (one === undefined) continue;
        open.push(one);
        if (open.length < most) continue;
        await commit();
      }
      if (open.length > 0) await commit();
    } catch (error) {
      await removeStaged(open);
      if (!(error instanceof UnreadableSource)) throw error;
      failure = error;
    }
    await this.#manifests.published(context.folder);
    const { root } = this.#paths;
    const folder = join(root, seriesFolder(this.#request.source.name, recipe.source.series));
    await releaseBacked(folder, context.folder);
    const sum = (name: 'days' | 'bars' | 'short' | 'bytes'): number =>
      made.reduce((total, one) => total + one[name], 0);
    const sums = { days: sum('days'), bars: sum('bars'), short: sum('short'), bytes: sum('bytes') };
    const all = { ...of, ...sums, months: made.map(({ label }) => label) };
    if (failure !== undefined) return { ...all, outcome: 'failed', text: failure.message };
    return { ...all, outcome: made.length > 0 ? 'made' : 'skipped' };
  }

  async #commit({ folder, series }: MonthContext, made: readonly MadeMonth[]): Promise<void> {
    await this.#opened?.lock.confirm();
    // Checked again: a symbolic link may have replaced a folder since the rows were read.
    await this.#paths.folder(seriesFolder(this.#request.source.name, series));
    await commitFiles(
      { paths: this.#paths, manifests: this.#manifests },
      {
        seriesFolder: folder,
        publications: made.map(({ staged, target }) => ({ staged, target })),
        dead: [],
        lines: made.flatMap(({ lines }) => lines),
      },
    );
  }

  async summary(): Promise<BuildSummary> {
    const { failed, months } = this.#counts;
    const { terms } = this.#request.source;
    if (this.#opened !== undefined && months > 0 && terms !== undefined)
      await writeNotice(this.#paths, terms.notice);
    return { ...this.#counts, exitCode: failed > 0 ? 4 : 0 };
  }
}

function plannedSeries(of: Omit<BuiltSeries, 'outcome'>, months: readonly BarMonth[]): BuiltSeries {
  const days = months.reduce((sum, { changed }) => sum + changed.length, 0);
  return { ...of, outcome: 'made', months: months.map(({ label }) => label), days };
}
