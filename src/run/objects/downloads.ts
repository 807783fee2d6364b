/** The objects of a run: zips of the archive by `download-object.ts`, and the rows of periods of REST, from their request to their CSV. */
import { createHash } from 'node:crypto';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { Body } from '../../model/fetch.js';
import { startOfDay } from '../../model/calendar.js';
import { CryptodlError } from '../../model/errors.js';
import { bytesToFetch, seriesName } from '../../model/task.js';
import { REASON_FACTS, type AbsenceReason } from '../../model/absence-reasons.js';
import type { PartitionPlan, Task, SourceObject, Period, RestPeriod } from '../../model/task.js';
import type { Series, ShortObject } from '../../model/task.js';
import { downloadObject, type Arrived } from './download-object.js';
import {
  JoinedRows,
  NOT_IN_REST,
  SETTLE_MS,
  SpanRows,
  type PeriodRows,
  type RestRow,
} from '../../exchange/rest-rows.js';
import { rowsAsCsv } from '../../exchange/rest-csv.js';
import { restSpan, routesOf } from '../../exchange/routes.js';
import { findDataset, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { RunSession, Session } from '../session/session.js';
import { BODY_MEMORY_BYTES } from '../../http/transport/sink.js';

/** Of a CSV in memory to its zip, estimated high. */
const UNPACKED_GROWTH = 6;
/** Trades of a busy day stay in memory until they are written. */
const TRADES_BYTES = 256 * 1024 * 1024;
const ROWS_BYTES = 256 * 1024;

export class Downloads {
  readonly #rest: RestDownloads;
  #zips: RunSession['zips'];

  constructor(private readonly session: RunSession) {
    this.#rest = new RestDownloads(session);
    this.#zips = session.zips;
  }

  /** From now on, objects are requested from the archive, and not taken from the zips of another worker. */
  takeFromArchive(): void {
    this.#zips = undefined;
  }

  async download(plan: PartitionPlan, { object }: Task): Promise<Arrived> {
    const { live, observer } = this.session;
    const arrived = await live.during('download', { plan, object }, () =>
      object.rest === undefined
        ? downloadObject({ ...this.session, zips: this.#zips }, plan, object)
        : this.#rest.download(plan.series, object, object.rest),
    );
    if ('received' in arrived) observer.arrived(arrived.received.bytes);
    return arrived;
  }

  /** Tasks of a plan with the same name share one place in the queue. Undefined: the task has a place of its own. */
  together({ object: { rest } }: Task): string | undefined {
    return rest === undefined ? undefined : String(rest.from);
  }

  /** Bytes of memory that the object may take until its partition is written: its zip and its CSV, without spooled parts. */
  bytesOf({ series, object }: Task): number {
    if (object.rest === undefined) {
      const bytes = bytesToFetch(object) ?? 0;
      return Math.min(bytes, BODY_MEMORY_BYTES) + Math.min(bytes * UNPACKED_GROWTH, BODY_MEMORY_BYTES);
    }
    const routes = routesOf(this.session.exchange, series);
    if (routes.some(({ route }) => route.pager === 'id')) return TRADES_BYTES;
    const { cadence, from, to } = object.period;
    return cadence === 'daily' ? ROWS_BYTES : ROWS_BYTES * (to - from);
  }
}

/** Pages of rows that several periods share: they are requested once for the whole span, and each period takes its rows in order of time. */
interface Running {
  readonly taker: JoinedRows | SpanRows;
  readonly span: Pick<Period, 'from' | 'to'>;
  /** First day whose rows are not taken yet. */
  next: number;
}

/** Error codes that mean that REST has no rows, and the reason of the absent period. */
const NONE: Readonly<Record<string, AbsenceReason>> = {
  'before-history': 'before-history',
  'symbol-closed': 'delisted',
  'contract-unknown': 'not-listed-yet',
};

/** Downloads periods of REST. Consecutive periods of a series share their pages. */
export class RestDownloads {
  /** By the name of the series. */
  readonly #running = new Map<string, Running>();
  #hasWarned = false;

  constructor(private readonly session: Session) {}

  /**
   * A period that REST no longer keeps, or has no rows of, is absent. `skip`: the held object stays, because REST does not have
   * more rows than it, or answered with one of the codes above. Rejects with a typed error.
   */
  async download(series: Series, object: SourceObject, rest: RestPeriod): Promise<Arrived> {
    const spec = findDataset(this.session.exchange, series.market, series.dataset);
    if (spec?.rest === undefined) throw new CryptodlError('bug', `REST has no ${series.dataset}`);
    try {
      const { rows, isBeforeFirst, servedAtMs } = await this.#rowsOf(series, spec, object.period, rest);
      // The clock of this machine, by which the period was planned, may be wrong.
      const isOpen = rest.open === true || servedAtMs < restSpan(spec, object.period).toMs + SETTLE_MS;
      const open = isOpen ? ({ open: true } as const) : {};
      if (rest.keepsHeld !== undefined) {
        const { inside, outside } = rowsAround(rows, rest.keepsHeld);
        const isWhole = outside >= rest.keepsHeld.rows && !isOpen;
        if (!isWhole) return { instead: { kind: 'skip' } };
        if (inside === 0) return { instead: { kind: 'skip', isRestEmpty: true } };
      }
      const reason = absenceOf(rest, isBeforeFirst);
      if (rows.length === 0) return { instead: { kind: 'absent', reason, isRestEmpty: true, ...open } };
      const microseconds = hasMicroseconds(spec, object.period);
      const csv = rowsAsCsv(rows, { spec, symbol: series.symbol, microseconds });
      return { received: receivedOf({ ...object, rest: { ...rest, ...open } }, csv) };
    } catch (error) {
      const reason = this.#absenceAfter(error, rest);
      return { instead: rest.keepsHeld === undefined ? { kind: 'absent', reason } : { kind: 'skip' } };
    }
  }

  async #rowsOf(series: Series, spec: DatasetSpec, period: Period, rest: RestPeriod): Promise<PeriodRows> {
    const name = seriesName(series);
    const known = this.#running.get(name);
    const isNext = known !== undefined && period.from >= known.next && period.to <= known.span.to;
    const running = isNext ? known : this.#begin(series, spec, { from: period.from, to: rest.to });
    this.#running.set(name, running);
    running.next = Math.max(running.next, period.to);
    let isOver = true;
    try {
      const taken = await running.taker.take(restSpan(spec, period));
      isOver = running.next >= running.span.to;
      return taken;
    } catch (error) {
      // REST refused the days before: its oldest day has moved on since the plan was made, and this day may still be there.
      if (running.span.from < period.from && isBeforeHistory(error))
        return await this.#rowsOf(series, spec, period, rest);
      throw error;
    } finally {
      if (isOver && this.#running.get(name) === running) this.#running.delete(name);
    }
  }

  #begin(series: Series, spec: DatasetSpec, span: Pick<Period, 'from' | 'to'>): Running {
    const asked = restSpan(spec, span);
    const { exchange, rest } = this.session;
    const parts = routesOf(exchange, series).map(
      ({ route, series: part }) => [part.dataset, rest.pages(route, part, asked)] as const,
    );
    const [first] = parts;
    if (first === undefined) throw new CryptodlError('bug', `${series.dataset} has no route`);
    const taker =
      spec.rest !== undefined && 'joins' in spec.rest
        ? new JoinedRows(parts, asked.fromMs)
        : new SpanRows(first[1], asked.fromMs);
    return { taker, span, next: span.from };
  }

  /** The reason of the absent period; a gap of the archive that REST cannot fill keeps its reason. Rethrows errors that are failures. */
  #absenceAfter(error: unknown, { reasonIfEmpty, fills }: RestPeriod): AbsenceReason {
    if (!(error instanceof CryptodlError)) throw error;
    const none = NONE[error.code];
    if (fills !== true && none !== undefined) return none;
    if (error.code === 'symbol-unknown' && reasonIfEmpty === 'delisted') return reasonIfEmpty;
    // When REST fills a gap of the archive, further codes count as no rows: REST drops old symbols and refuses some countries.
    if (fills !== true || !NOT_IN_REST.has(error.code)) throw error;
    if (error.code === 'location-restricted' && !this.#hasWarned) this.session.observer.warn(error.message);
    this.#hasWarned ||= error.code === 'location-restricted';
    return reasonIfEmpty;
  }
}

/** The number of different times of rows inside and outside of the gaps of the short object. */
function rowsAround(rows: readonly RestRow[], short: ShortObject): { inside: number; outside: number } {
  const gaps = short.gaps.map(([from, to]) => [Date.parse(from), Date.parse(to)] as const);
  const instants = [...new Set(rows.map(({ atMs }) => atMs))];
  const inside = instants.filter((atMs) =>
    gaps.some(([fromMs, toMs]) => atMs >= fromMs && atMs < toMs),
  ).length;
  return { inside, outside: instants.length - inside };
}

const isBeforeHistory = (error: unknown): boolean =>
  error instanceof CryptodlError && error.code === 'before-history';

function absenceOf({ reasonIfEmpty, fills }: RestPeriod, isBeforeFirst: boolean): AbsenceReason {
  const { at } = REASON_FACTS[reasonIfEmpty];
  return fills === true || isBeforeFirst || at !== 'start' ? reasonIfEmpty : 'hole';
}

function hasMicroseconds(spec: DatasetSpec, { from }: Period): boolean {
  const { rest } = spec;
  if (rest === undefined || 'joins' in rest || rest.microsecondsFrom === undefined) return false;
  return startOfDay(from, spec) >= Date.parse(rest.microsecondsFrom);
}

function receivedOf(object: SourceObject, csv: Buffer): ReceivedObject {
  const body: Body = { kind: 'memory', bytes: csv };
  return {
    object,
    body,
    csv: body,
    name: object.key,
    bytes: csv.length,
    sha256: createHash('sha256').update(csv).digest('hex'),
    verified: 'rest',
  };
}
