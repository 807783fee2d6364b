/** Tells the followers of a run which work begins and ends, and counts the work in progress. */
import { randomUUID } from 'node:crypto';
import type { Layer } from '../http/fetch.js';
import type { OnWork, Work, WorkStage, WorkSubject } from '../model/work.js';

/** Stages of partitions and objects. Requests are counted in the figures of the network. */
const COUNTED = ['partition', 'download', 'write', 'check', 'convert', 'commit'] as const;
type CountedStage = (typeof COUNTED)[number];

/** Pieces of work in progress, by stage. */
export type ActiveWork = Readonly<Record<CountedStage, number>>;

/** Work of these stages has parts, which find it by its partition or object. */
const WHOLES: ReadonlySet<WorkStage> = new Set(['partition', 'download', 'write']);

export class WorkTracker {
  readonly #followers: readonly OnWork[];
  /** The id of the work that was begun last for a partition or object. */
  readonly #ids = new WeakMap<object, string>();
  readonly #idStart = randomUUID().slice(0, 8);
  #begun = 0;
  readonly #active = Object.fromEntries(COUNTED.map((stage) => [stage, 0])) as Record<CountedStage, number>;

  constructor(followers: readonly OnWork[]) {
    this.#followers = followers;
  }

  get active(): ActiveWork {
    return { ...this.#active };
  }

  /** The work that parts of the download of this object belong to. */
  idOf(object: object): string | undefined {
    return this.#ids.get(object);
  }

  /** Returns the function to call at the end of the work. */
  begin(stage: CountedStage, subject: WorkSubject): (error?: unknown) => void {
    this.#active[stage] += 1;
    const end = this.#followers.length === 0 ? undefined : this.#tell(stage, subject);
    return (error) => {
      this.#active[stage] -= 1;
      end?.(error);
    };
  }

  async during<T>(stage: CountedStage, subject: WorkSubject, act: () => Promise<T>): Promise<T> {
    return ending(this.begin(stage, subject), act);
  }

  /** Outside the retries: tells the request and its waits. Without followers, it adds nothing. */
  readonly layer: Layer = (next) =>
    this.#followers.length === 0
      ? next
      : (request, context) => {
          const { id, end } = this.#begin({ stage: 'request', name: request.url, parentId: context.workId });
          const onWait: typeof context.onWait = (reason) => {
            const ended = context.onWait?.(reason);
            const wait = this.#begin({ stage: 'wait', name: reason, parentId: id });
            return () => {
              ended?.();
              wait.end();
            };
          };
          return ending(end, () => next(request, { ...context, workId: id, onWait }));
        };

  #tell(stage: CountedStage, { plan, object, label }: WorkSubject): (error?: unknown) => void {
    const { series } = plan;
    const name = object?.key ?? label ?? plan.label;
    const parentId = (object === undefined ? undefined : this.#ids.get(object)) ?? this.#ids.get(plan);
    const { id, end } = this.#begin({ stage, name, series, parentId });
    if (!WHOLES.has(stage)) return end;
    const subject = object ?? plan;
    const before = this.#ids.get(subject);
    this.#ids.set(subject, id);
    return (error) => {
      if (before === undefined) this.#ids.delete(subject);
      else this.#ids.set(subject, before);
      end(error);
    };
  }

  #begin(work: Omit<Work, 'id'>): { id: string; end: (error?: unknown) => void } {
    this.#begun += 1;
    const id = this.#idStart + this.#begun.toString(16).padStart(8, '0');
    const ends = this.#followers.map((begin) => begin({ id, ...work }));
    return {
      id,
      end: (error) => {
        for (const end of ends) end(error);
      },
    };
  }
}

async function ending<T>(end: (error?: unknown) => void, act: () => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await act();
  } catch (error) {
    end(error ?? new Error('unknown'));
    throw error;
  }
  end();
  return result;
}
