/** Tells the followers of a run which work begins and ends, and counts the work in progress. */
import type { Layer } from '../http/fetch.js';
import type { OnWork, Work, WorkSubject } from '../model/work.js';

/** Stages of partitions and objects. Requests are counted in the figures of the network. */
const COUNTED = ['partition', 'download', 'write', 'check', 'convert', 'commit'] as const;
type CountedStage = (typeof COUNTED)[number];

/** Pieces of work in progress, by stage. */
export type ActiveWork = Readonly<Record<CountedStage, number>>;

export class WorkTracker {
  readonly #followers: readonly OnWork[];
  readonly #active = Object.fromEntries(COUNTED.map((stage) => [stage, 0])) as Record<CountedStage, number>;

  constructor(followers: readonly OnWork[]) {
    this.#followers = followers;
  }

  get active(): ActiveWork {
    return { ...this.#active };
  }

  /** Returns the function to call at the end of the work. */
  begin(stage: CountedStage, { plan, object, label }: WorkSubject): () => void {
    this.#active[stage] += 1;
    const end = this.#tell({ stage, name: object?.key ?? label ?? plan.label, series: plan.series });
    return () => {
      this.#active[stage] -= 1;
      end();
    };
  }

  async during<T>(stage: CountedStage, subject: WorkSubject, act: () => Promise<T>): Promise<T> {
    const end = this.begin(stage, subject);
    try {
      return await act();
    } finally {
      end();
    }
  }

  /** Outside the retries: tells the request and its waits. Without followers, it adds nothing. */
  readonly layer: Layer = (next) => {
    if (this.#followers.length === 0) return next;
    return async (request, context) => {
      const end = this.#tell({ stage: 'request', name: request.url });
      const onWait: typeof context.onWait = (reason) => {
        const ended = context.onWait?.(reason);
        const endWait = this.#tell({ stage: 'wait', name: `${reason}: ${request.url}` });
        return () => {
          ended?.();
          endWait();
        };
      };
      try {
        return await next(request, { ...context, onWait });
      } finally {
        end();
      }
    };
  };

  #tell(work: Work): () => void {
    const ends = this.#followers.map((begin) => begin(work));
    return () => {
      for (const end of ends) end();
    };
  }
}
