/** `cryptodl audit`: prints findings about the archive, or about the lake against REST; with --prefer daily, rebuilds faulty months of the lake from daily objects. */
import { forEachItem, progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { runAndPrint, withLog } from '../../run/download.js';
import { openLogOf } from '../../run/report/log.js';
import { exitCode as exitCodeOfRun, exitCodeOfJobs } from '../../model/exit-code.js';
import type { ExitCode } from '../../model/exit-code.js';
import { seriesName, FORMATS } from '../../model/task.js';
import { countText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import type { RunFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { printLines } from '../../text/printable.js';
import { verbEngine } from '../../convert/duckdb.js';
import { openSession } from '../../run/session/session.js';
import type { RunSession } from '../../run/session/session.js';
import { makeTempFolder } from '../../files/temp-files.js';
import { refuseFile } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import type { CryptodlError } from '../../model/errors.js';
import type { Sample } from '../../plan/options/lake-flags.js';
import type { SeriesRequest } from '../../plan/series-request.js';
import { asUnreachable } from '../../exchange/listing.js';
import { auditArchive, selectAudit } from './audit-archive.js';
import { auditRest } from './audit-rest.js';
import { itemsOfMonth } from './compare-rows.js';
import type { AuditFinding, AuditItem, AuditedMonth } from './compare-rows.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import { eachDay, monthOf, parsePeriod } from '../../model/calendar.js';
import { isFromRest } from '../../model/manifest-line.js';
import type { RunSelection } from '../../plan/select/selection.js';

type Flag = RunFlag | 'against' | 'prefer' | 'sample';

/**
 * Resolves with 7 or 3 if a later audit may read the failed objects, else with 4 for findings and permanent failures, else with 0.
 * The rebuild counts as a further job (`exitCodeOfJobs`). An error or a signal that ends the audit has its own code.
 */
export async function audit(command: VerbInput<Flag>): Promise<ExitCode> {
  return withSignals(command, async (request, signals) => {
    const tally = await withLog(request, command.io, (logged) => printItems(command, logged));
    const { io, resolved } = command;
    if (resolved.options.prefer !== 'daily') return conclude(command, tally, undefined);
    if (tally.rebuilds.length === 0) return conclude(command, tally, 0);
    // An ordinary run with plan, outcomes and summary.
    const rebuild = { ...request, verb: 'vision' as const, select: selectRebuilds(tally.rebuilds) };
    const log = openLogOf(resolved.options, io);
    const { exitCode } = await runAndPrint(rebuild, { io, log, signalled: signals.signalled });
    return conclude(command, tally, exitCode);
  });
}

async function printItems(
  { io, resolved }: VerbInput<Flag>,
  request: VerbRequest<Flag>,
): Promise<AuditTally> {
  const { options } = resolved;
  const printProgress = progressPrinter(options, io);
  const onProgress = (tally: AuditTally): void => printProgress(() => textOf(tally.summary(), options));
  return forEachItem(auditSelected(request, onProgress), async (item) => {
    if (item.event === 'failed') printLines(io.stderr, [`failed  ${item.key}: ${item.message}`]);
    if (options.json) await writeData(io, [item]);
    else if (item.event === 'finding')
      await writeData(io, [`${seriesName(item)} ${item.month}  ${item.kind}  ${item.text}`]);
  });
}

async function conclude(
  { io, resolved }: VerbInput<'against' | 'json' | 'quiet'>,
  tally: AuditTally,
  rebuilt: ExitCode | undefined,
): Promise<ExitCode> {
  const { options } = resolved;
  const summary = tally.summary(rebuilt);
  const { exitCode, rebuildable, mended } = summary;
  if (options.json) await writeData(io, [{ event: 'audit', ...summary }]);
  if (options.quiet && exitCode === 0) return exitCode;
  printLines(io.stderr, [`${textOf(summary, options)}${mended > 0 ? `; ${mended} fixed in the lake` : ''}`]);
  if (rebuildable > 0 && rebuilt === undefined)
    printLines(io.stderr, [
      `${countText(rebuildable, 'month')} of the lake should be rebuilt from daily objects`,
      'next  the same command with --prefer daily',
    ]);
  return exitCode;
}

function textOf(
  { series, months, compared, rows, findings, failed, sample }: AuditSummary,
  { against }: Options<'against'>,
): string {
  const found = Object.values(findings).reduce((sum, number) => sum + number, 0);
  const what =
    against === 'rest'
      ? `${countText(compared, 'period')} compared with REST, ${countText(rows, 'row')}`
      : `${countText(months, 'month')}: ${compared} with both cadences, ${countText(rows, 'row')} compared`;
  const unread = failed > 0 ? `, ${countText(failed, 'object')} could not be read` : '';
  const drawn = sample === undefined ? '' : `; --sample ${sample} draws the same periods again`;
  return `${series} series, ${what}; ${countText(found, 'finding')}${unread}${drawn}`;
}

// Audits the selected months, collects the months of the lake that daily objects would improve, and counts the findings.

export interface AuditSummary {
  readonly series: number;
  /** Months; with --against rest, days or months. */
  readonly months: number;
  /** Those with rows of both sides. */
  readonly compared: number;
  /** Compared rows. */
  readonly rows: number;
  readonly findings: Readonly<Partial<Record<AuditFinding['kind'], number>>>;
  /** Objects that could not be read. */
  readonly failed: number;
  /** Months of the lake whose daily objects are better; with --prefer daily, this call rebuilds them. */
  readonly rebuildable: number;
  /** With --prefer daily: findings that the lake does not have, because it holds the daily objects. */
  readonly mended: number;
  /** The value of --sample that draws the same periods again. */
  readonly sample?: string;
  readonly exitCode: ExitCode;
}

export class AuditTally {
  readonly rebuilds: SeriesRequest[] = [];
  readonly #series = new Set<string>();
  readonly #findings: Partial<Record<AuditFinding['kind'], number>> = {};
  readonly #errors: CryptodlError[] = [];
  readonly #counts = { months: 0, compared: 0, rows: 0, rebuildable: 0 };
  #mended = 0;

  constructor(private readonly sample?: Sample) {}

  add({ series, findings, failed, rows }: AuditedMonth, { requests, mended }: Rebuild): void {
    const counts = this.#counts;
    this.#series.add(seriesName(series));
    counts.months += 1;
    counts.compared += rows > 0 ? 1 : 0;
    counts.rows += rows;
    counts.rebuildable += requests.length > 0 ? 1 : 0;
    this.#errors.push(...failed.values());
    for (const { kind } of findings) this.#findings[kind] = (this.#findings[kind] ?? 0) + 1;
    this.rebuilds.push(...requests);
    this.#mended += mended;
  }

  /** `rebuilt`: the exit code of the rebuild, which counts as a further job; undefined without --prefer daily. */
  summary(rebuilt?: ExitCode): AuditSummary {
    const mended = rebuilt === 0 ? this.#mended : 0;
    const found = Object.values(this.#findings).reduce((sum, number) => sum + number, 0);
    const retryable = this.#errors.filter((error) => error.retryable).length;
    const code = exitCodeOfRun({
      waitedTooLong: this.#errors.filter((error) => error.code === 'wait-too-long').length,
      failedRetryable: retryable,
      // A finding stays until the archive publishes the object again.
      failedPermanent: this.#errors.length - retryable + found - mended,
    });
    return {
      series: this.#series.size,
      ...this.#counts,
      findings: { ...this.#findings },
      failed: this.#errors.length,
      mended,
      ...(this.sample === undefined ? {} : { sample: `${this.sample.count}:${this.sample.seed ?? ''}` }),
      exitCode: exitCodeOfJobs([code, rebuilt ?? 0], undefined),
    };
  }
}

/**
 * Yields the findings and failed objects, and returns the counts. Calls `onProgress` after each month. With --prefer daily, warns of months
 * that stay although their daily objects are better. Rejects with usage errors and fatal errors.
 */
export async function* auditSelected(
  request: VerbRequest<Flag>,
  onProgress: (tally: AuditTally) => void = () => undefined,
): AsyncGenerator<AuditItem, AuditTally> {
  const { options } = request.resolved;
  const isRest = options.against === 'rest';
  if (isRest && options.prefer !== undefined)
    throw usage('--prefer rebuilds months from objects of the archive', 'leave --prefer or --against out');
  if (!isRest && options.sample !== undefined)
    throw usage('--sample draws days and months that are compared with REST', 'add --against rest');
  const session = openSession(request);
  const { sample: given } = options;
  const seed = (): string => Math.floor(session.clock.random() * 2 ** 32).toString(16);
  const sample = given && { ...given, seed: given.seed ?? seed() };
  const tally = new AuditTally(sample);
  const engine = verbEngine('audit', { ...request, signal: session.stop.signal }, ENGINE_MEMORY_BYTES);
  try {
    refuseFile(session.paths.root);
    await session.refuseBanned(isRest ? 'metrics' : 'audit');
    const audited = isRest ? [] : await selectAudit(session, request);
    await makeTempFolder(engine.folder);
    const months = isRest
      ? auditRest(session, request, { engine, sample })
      : auditArchive(session, audited, engine);
    for await (const month of months) {
      yield* itemsOfMonth(month);
      const rebuild = isRest ? NO_REBUILD : await rebuildOf(session, month);
      tally.add(month, rebuild);
      if (options.prefer === 'daily' && rebuild.note !== undefined) session.observer.warn(rebuild.note);
      onProgress(tally);
    }
    return tally;
  } catch (error) {
    throw asUnreachable(error);
  } finally {
    await engine.end();
    await session.close();
  }
}

const ENGINE_MEMORY_BYTES = 600e6;
const NO_REBUILD: Rebuild = { requests: [], mended: 0 };

// `audit --prefer daily`: selects the months of the lake whose daily objects are better than the monthly one.

/** Findings that disappear when daily objects replace the monthly one. */
const MENDED_BY_DAYS: ReadonlySet<AuditFinding['kind']> = new Set(['rows-missing', 'rows-differ']);

export interface Rebuild {
  /** One request for each format in which the lake holds the monthly object. */
  readonly requests: readonly SeriesRequest[];
  /** The number of findings of which the lake is free after the requests. */
  readonly mended: number;
  /** The reason why the month stays as it is. */
  readonly note?: string;
}

/** Requests that rebuild the month from daily objects if these have all rows of the monthly object, and more rows or other values. */
async function rebuildOf({ paths, exchange }: RunSession, month: AuditedMonth): Promise<Rebuild> {
  const { series, findings } = month;
  const mended = findings.filter(({ kind }) => MENDED_BY_DAYS.has(kind)).length;
  const period = parsePeriod('monthly', month.month);
  // If each side has rows that the other lacks, neither is known to be right.
  const isUnclear = findings.some(({ kind }) => kind === 'rows-extra');
  if (mended === 0 || isUnclear || period === undefined) return { requests: [], mended: 0 };
  const days = eachDay(period);
  const manifest = await readHeld(paths.root, exchange, series);
  const lines = FORMATS.flatMap((format) => manifest[format].ofMonth(monthOf(period.from)) ?? []);
  const held = lines.filter((line) => !isFromRest(line)).map(({ settings }) => settings);
  const isWhole = month.failed.size === 0 && month.rowsWithoutDay === 0;
  const requests = held
    .filter(({ format, cadence }) => isWhole && format !== 'zip' && cadence !== 'monthly')
    .map((settings): SeriesRequest => ({
      series,
      settings,
      cadences: ['daily'],
      ranges: [{ from: period.from, to: period.to }],
      exact: true,
      rewrites: 'always',
      emptyDays: days.filter((day) => !month.days.has(day)),
    }));
  if (requests.length < held.length)
    return {
      requests,
      mended: 0,
      note: `${seriesName(series)} ${month.month} is not rebuilt: it is a zip, or of --cadence monthly, or one of its days has no daily object that can be read`,
    };
  // A lake that holds the days instead of the month is free of them without a request.
  const holdsDays = FORMATS.some((format) => days.some((day) => manifest[format].hasDay(day)));
  return { requests, mended: requests.length > 0 || holdsDays ? mended : 0 };
}

/** Joins the months of one series and format into one request. */
export function selectRebuilds(requests: readonly SeriesRequest[]): (session: RunSession) => RunSelection {
  const together = new Map<string, SeriesRequest>();
  for (const request of requests) {
    const id = JSON.stringify([request.series, request.settings.format]);
    const known = together.get(id);
    const ranges = [...(known?.ranges ?? []), ...request.ranges];
    const emptyDays = [...(known?.emptyDays ?? []), ...(request.emptyDays ?? [])];
    together.set(id, { ...request, ranges, emptyDays });
  }
  return () => ({
    verb: 'vision',
    requests: [...together.values()],
    hasListing: true,
    what: `${countText(requests.length, 'month')} to rebuild`,
    range: 'from daily objects',
    notes: [],
  });
}
