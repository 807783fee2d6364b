/**
 * What the runs of one worker share: requests with their limits, the workshop, and open lakes. Each job of the worker is a run of its
 * own, with its own plan and its own outcomes.
 */
import { HOUR_MS } from '../../model/units.js';
import { rm } from 'node:fs/promises';
import { tempFolderOf, tempPath } from '../../files/temp-files.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import { Concurrency } from '../pacing/concurrency.js';
import type { NetworkFigures } from '../report/network-figures.js';
import { nowMsOf } from '../../plan/options/verb-request.js';
import { LiveRun } from '../report/live-run.js';
import { ARCHIVE_START, openHttp, type HttpSessionRequest } from './http-session.js';
import { newRunFolder, openLake } from './open-lake.js';
import type { LakeParts, Session, SharedParts } from './session.js';
import { openWorkshop, type Workshop } from './workshop.js';

export type PipelineRequest = Omit<HttpSessionRequest, 'nowMs' | 'live' | 'observer' | 'concurrency'> & {
  /** Whether the lakes of the runs are in buckets. */
  readonly isToBucket: boolean;
  /** Ends all runs. */
  readonly stop: AbortController;
};

interface SharedHttp {
  readonly opened: ReturnType<typeof openHttp>;
  readonly openedAt: number;
  users: number;
}

/** The requests of a worker know the time at which they were opened, so they are opened again after this time. */
const RENEW_MS = HOUR_MS;

export class Pipeline implements SharedParts {
  /** Shared by all runs. `release` does nothing until the pipeline closes. */
  readonly workshop: Workshop;
  readonly #concurrency: Concurrency;
  readonly #endWorkshop: () => void;
  readonly #spillFolder: string;
  readonly #lakes = new Map<string, Promise<LakeParts>>();
  #http: SharedHttp | undefined;

  constructor(private readonly request: PipelineRequest) {
    const { resolved, stop, clock, surroundings, isToBucket } = request;
    const { concurrency, tempDir } = resolved.options;
    this.#concurrency = new Concurrency({ choice: concurrency, start: ARCHIVE_START });
    this.#spillFolder = tempPath(tempFolderOf(tempDir, surroundings.home), 'worker');
    // Another worker requests the unwritten objects of a killed worker again.
    const workshop = openWorkshop(
      this.#spillFolder,
      { isToBucket, boundsUnwritten: true },
      { clock, stop, concurrency: this.#concurrency },
    );
    this.#endWorkshop = workshop.release;
    this.workshop = { ...workshop, release: () => undefined };
  }

  /** The figures of all requests; undefined before the first run. */
  get network(): NetworkFigures | undefined {
    return this.#http?.opened.http.network();
  }

  /** The requests of one run. Runs share them, except where the options of the run decide about another source. */
  http(request: HttpSessionRequest, own: Parameters<typeof openHttp>[1]): ReturnType<typeof openHttp> {
    const { fill, join: joined } = request.resolved.options;
    const { common } = this.request;
    if (fill !== undefined || joined !== undefined)
      return openHttp({ ...request, common, concurrency: this.#concurrency }, own);
    const shared = this.#shared();
    shared.users += 1;
    return {
      http: shared.opened.http,
      close: async () => {
        shared.users -= 1;
        if (shared !== this.#http && shared.users === 0) await shared.opened.close();
      },
    };
  }

  #shared(): SharedHttp {
    const { clock, stop } = this.request;
    const known = this.#http;
    if (known !== undefined && clock.monotonic() - known.openedAt < RENEW_MS) return known;
    const parts = { observer: SILENT_OBSERVER, nowMs: nowMsOf(this.request), live: new LiveRun(clock) };
    const opened = openHttp(
      { ...this.request, ...parts, concurrency: this.#concurrency },
      { signal: stop.signal, waitSignal: undefined },
    );
    this.#http = { opened, openedAt: clock.monotonic(), users: 0 };
    if (known?.users === 0) void known.opened.close();
    return this.#http;
  }

  /** The open lake of a run. The first run opens it, and the pipeline keeps it open. */
  async lake(session: Session, command: string): Promise<LakeParts> {
    const { root } = session.paths;
    // The loss of the lock ends the worker, not only the run that opened the lake.
    const { stop } = this.request;
    const opening = this.#lakes.get(root) ?? openLake({ ...session, stop }, command);
    this.#lakes.set(root, opening);
    try {
      const { lock, manifests } = await opening;
      // The release at the end of the run does nothing.
      const borrowed = { ...lock, release: () => Promise.resolve() };
      return { lock: borrowed, manifests, runFolder: newRunFolder(session) };
    } catch (error) {
      this.#lakes.delete(root);
      throw error;
    }
  }

  /** Closes the lake of a run that no other run uses: the mirror of a lake in a bucket. */
  async closeLake(root: string): Promise<void> {
    const opening = this.#lakes.get(root);
    this.#lakes.delete(root);
    const parts = await opening?.catch(() => undefined);
    await parts?.lock.release();
  }

  /** To be called after the last run has ended. */
  async close(): Promise<void> {
    this.#endWorkshop();
    await this.#http?.opened.close();
    for (const root of this.#lakes.keys()) await this.closeLake(root);
    await rm(this.#spillFolder, { recursive: true, force: true });
  }
}
