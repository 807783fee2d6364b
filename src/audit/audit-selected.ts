/** Audits the selected months, collects the months of the lake that daily objects would improve, and counts the findings. */
import { verbEngine } from '../convert/duckdb.js';
import { openSession } from '../download/session.js';
import { makeTempFolder } from '../files/temp-files.js';
import { refuseFile } from '../lake/layout.js';
import { usage } from '../model/errors.js';
import type { CryptodlError } from '../model/errors.js';
import { exitCode, exitCodeOfJobs } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { sampleOf } from '../options/parsers.js';
import type { Sample } from '../options/parsers.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { asUnreachable } from '../source/listing.js';
import { auditArchive, selectAudit } from './audit-archive.js';
import { auditRest } from './audit-rest.js';
import { itemsOfMonth } from './audit-finding.js';
import type { AuditFinding, AuditItem, AuditedMonth } from './audit-finding.js';
import { rebuildOf } from './rebuild-months.js';
import type { Rebuild } from './rebuild-months.js';

/** The counts of an audit as plain data. */
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

/** Counts for the summary and the exit code. */
export class AuditTally {
  readonly rebuilds: SeriesRequest[] = [];
  readonly #sample: Sample | undefined;
  readonly #series = new Set<string>();
  readonly #findings: Partial<Record<AuditFinding['kind'], number>> = {};
  readonly #errors: CryptodlError[] = [];
  readonly #counts = { months: 0, compared: 0, rows: 0, rebuildable: 0 };
  #mended = 0;

  constructor(sample?: Sample) {
    this.#sample = sample;
  }

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
    const code = exitCode({
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
      ...(this.#sample === undefined ? {} : { sample: this.#sample.text }),
      exitCode: exitCodeOfJobs([code, rebuilt ?? 0], undefined),
    };
  }
}

/**
 * Yields the findings and failed objects, and returns the counts. Calls `onProgress` after each month. With --prefer daily, warns of months
 * that stay although their daily objects are better. Rejects with usage errors and fatal errors.
 */
export async function* auditSelected(
  request: VerbRequest,
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
  const sample = given?.seed === '' ? sampleOf(given.count, seed()) : given;
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
