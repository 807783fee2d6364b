/** The objects of a run, from the archive or from REST. */
import { bytesToFetch, type PartitionPlan, type Task } from '../../model/task.js';
import { routesOf } from '../../exchange/routes.js';
import type { RunSession } from '../session/session.js';
import { BODY_MEMORY_BYTES, downloadObject, type Arrived } from './download-object.js';
import { RestDownloads } from './download-rest.js';

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
