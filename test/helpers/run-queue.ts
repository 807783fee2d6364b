/** A run queue whose work is done by the test, and which writes down what it is told. */
import { CryptodlError } from '../../src/model/errors.js';
import type { ErrorCode } from '../../src/model/errors.js';
import type { PartitionPlan, Task } from '../../src/model/task.js';
import type { DeferredPlans, Download, QueueWork } from '../../src/run/queue/run-queue.js';
import { Places } from '../../src/run/queue/places.js';
import { RunQueue } from '../../src/run/queue/run-queue.js';
import { SETTINGS } from './conversion.js';

const SERIES = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' } as const;

export function task(key: string, kind: 'fetch' | 'skip' = 'fetch'): Task {
  return {
    series: SERIES,
    object: { key, period: { cadence: 'daily', from: 0, to: 1 } },
    action: { kind },
  };
}

export function plan(label: string, tasks: readonly Task[]): PartitionPlan {
  return { series: SERIES, settings: SETTINGS, label, tasks };
}

class MemorySpool implements DeferredPlans {
  readonly #plans: PartitionPlan[] = [];
  isClosed = false;
  add(deferred: PartitionPlan): Promise<void> {
    this.#plans.push(deferred);
    return Promise.resolve();
  }
  plans(): AsyncIterable<PartitionPlan> {
    return iterate(this.#plans);
  }
  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }
}

interface Write {
  readonly label: string;
  readonly received: readonly string[];
  readonly absent: readonly string[];
  readonly rebuild: string | undefined;
}

/** `download` gives what was received, or how else it ended; undefined: the object is absent. */
type Work = Omit<QueueWork<string>, 'places' | 'stop' | 'refusal' | 'createSpool' | 'beforeRound'>;
type Changes = Partial<Omit<Work, 'download'>> & {
  readonly download?: (plan: PartitionPlan, task: Task) => Promise<string | Download<string> | undefined>;
};

/** A queue whose downloads say their own key, unless the test gives other work; everything told is written down. */
export function queueOf(
  { download, ...changes }: Changes = {},
  downloads = 4,
  writers = 2,
  refusal: () => CryptodlError | undefined = () => undefined,
  places = new Places({ downloads, writers }),
) {
  const writes: Write[] = [];
  const failed: [string, ErrorCode][] = [];
  const settled: [string, string][] = [];
  const rounds: number[] = [];
  const spools: MemorySpool[] = [];
  const stop = new AbortController();
  const work: Work = {
    prepare: (wanted) => Promise.resolve(wanted),
    download: async (wanted, asked) => {
      const received = download === undefined ? asked.object.key : await download(wanted, asked);
      if (typeof received === 'object') return received;
      return received === undefined ? { instead: { kind: 'absent', reason: 'hole' } } : { received };
    },
    together: () => undefined,
    bytesOf: () => 1,
    substituted: () => Promise.resolve(undefined),
    write: (written, received, missing) => {
      const absent = [...missing].filter(([, why]) => why === 'absent').map(([key]) => key);
      writes.push({ label: written.label, received, absent, rebuild: written.rebuild });
      return Promise.resolve(new Map());
    },
    onFailed: (_, { object }, error) => {
      failed.push([object.key, error.code]);
      return Promise.resolve();
    },
    onSettled: (_, { object, action }) => {
      settled.push([object.key, action.kind]);
      return Promise.resolve();
    },
    ...changes,
  };
  const queue = new RunQueue({
    ...work,
    places,
    stop,
    refusal,
    createSpool: () => {
      const spool = new MemorySpool();
      spools.push(spool);
      return spool;
    },
    beforeRound: (round) => {
      rounds.push(round);
      return Promise.resolve();
    },
  });
  const run = (plans: readonly PartitionPlan[]): Promise<void> => queue.run(iterate(plans));
  return { places, queue, run, stop, writes, failed, settled, rounds, spools };
}

async function* iterate(plans: Iterable<PartitionPlan>): AsyncGenerator<PartitionPlan> {
  for (const next of plans) yield await Promise.resolve(next);
}

export const fails = (code: ErrorCode): CryptodlError => new CryptodlError(code, 'said by the test');
