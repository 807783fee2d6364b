/** The work of a run that is in progress. */
import type { FetchRequest, Wait } from '../http/fetch.js';
import type { RequestFollower } from '../http/transport/measure.js';
import type { Clock } from '../model/clock.js';
import type { Work, WorkStage, WorkSubject } from '../model/work.js';

/** It holds only what is in progress, so its memory is bounded by the concurrency of the run. */
export class WorkTracker implements RequestFollower {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #pieces = new Set<{ readonly work: Work; readonly begunAt: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** In the order of their beginning. `forMs`: milliseconds since then. */
  get pieces(): readonly (Work & { readonly forMs: number })[] {
    const now = this.#clock.monotonic();
    return [...this.#pieces].map(({ work, begunAt }) => ({ ...work, forMs: Math.round(now - begunAt) }));
  }

  /** The number of pieces by stage, without requests and waits: the figures of the network count them. */
  get active(): Readonly<Record<Exclude<WorkStage, 'request' | 'wait'>, number>> {
    const counts = { partition: 0, download: 0, write: 0, check: 0, convert: 0, commit: 0 };
    for (const {
      work: { stage },
    } of this.#pieces)
      if (stage !== 'request' && stage !== 'wait') counts[stage] += 1;
    return counts;
  }

  /** Returns the function to call at the end of the work. */
  begin(stage: WorkStage, { plan, object, label }: WorkSubject): () => void {
    return this.#add({ stage, name: object?.key ?? label ?? plan.label, series: plan.series });
  }

  async during<T>(stage: WorkStage, subject: WorkSubject, act: () => Promise<T>): Promise<T> {
    const end = this.begin(stage, subject);
    try {
      return await act();
    } finally {
      end();
    }
  }

  onRequest({ url }: FetchRequest): () => void {
    return this.#add({ stage: 'request', name: url });
  }

  onWait(reason: Wait, { url }: FetchRequest): () => void {
    return this.#add({ stage: 'wait', name: `${reason}: ${url}` });
  }

  #add(work: Work): () => void {
    const piece = { work, begunAt: this.#clock.monotonic() };
    this.#pieces.add(piece);
    return () => {
      this.#pieces.delete(piece);
    };
  }
}
