/** A run queue whose work is done by the test, and which writes down what it is told. */
import { CryptodlError } from '../../src/model/errors.js';
import type { ErrorCode } from '../../src/model/errors.js';
import type { PartitionPlan, Task } from '../../src/model/task.js';
import type { Arrived } from '../../src/run/objects/download-object.js';
import { emptyResult, type Missing } from '../../src/lake/write/writer.js';
import type { DeferredPlans, Rounds } from '../../src/run/queue/rounds.js';
import { Slots } from '../../src/run/pacing/places.js';
import { RunQueue } from '../../src/run/queue/run-queue.js';
import { received as receivedAs } from './conversion.js';
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
  plans(): AsyncGenerator<PartitionPlan> {
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

interface Changes {
  readonly prepare?: (plan: PartitionPlan) => Promise<PartitionPlan>;
  /** The key of what was received, or how else the download ended; undefined: the object is absent. */
  readonly download?: (plan: PartitionPlan, task: Task) => Promise<string | Arrived | undefined>;
  readonly together?: (task: Task) => string | undefined;
  readonly bytesOf?: (task: Task) => number;
  readonly substituted?: Rounds['substituted'];
  /** Resolves with the errors of refused objects by key; `held`: the rows of an absent object stay. */
  readonly write?: (
    plan: PartitionPlan,
    received: readonly string[],
    missing: Missing,
  ) => Promise<ReadonlyMap<string, CryptodlError | 'held'>>;
  readonly onFailed?: (plan: PartitionPlan, task: Task, error: CryptodlError) => Promise<void>;
  readonly onSettled?: (plan: PartitionPlan, task: Task) => Promise<void>;
}

/** A queue whose downloads say their own key, unless the test gives other work; everything told is written down. */
export function queueOf(
  changes: Changes = {},
  downloads = 4,
  writers = 2,
  refusal: () => CryptodlError | undefined = () => undefined,
  places = new Slots({ downloads, writers }),
) {
  const writes: Write[] = [];
  const failed: [string, ErrorCode][] = [];
  const settled: [string, string][] = [];
  const rounds: number[] = [];
  const spools: MemorySpool[] = [];
  const stop = new AbortController();
  const fail: Changes['onFailed'] = (_, { object }, error) => {
    failed.push([object.key, error.code]);
    return Promise.resolve();
  };
  const settle: Changes['onSettled'] = (_, { object, action }) => {
    settled.push([object.key, action.kind]);
    return Promise.resolve();
  };
  const write: Changes['write'] = (written, received, missing) => {
    const absent = [...missing].filter(([, why]) => why === 'absent').map(([key]) => key);
    writes.push({ label: written.label, received, absent, rebuild: written.rebuild });
    return Promise.resolve(new Map());
  };
  const queue = new RunQueue({
    writer: {
      prepare: changes.prepare ?? ((wanted) => Promise.resolve(wanted)),
      write: async (written, received, missing) => {
        const keys = received.map(({ object }) => object.key);
        const refused = await (changes.write ?? write)(written, keys, missing);
        const errors = new Map<string, CryptodlError>();
        for (const [key, why] of refused) if (why !== 'held') errors.set(key, why);
        const stillHeld = new Set([...refused.keys()].filter((key) => !errors.has(key)));
        return { ...emptyResult(errors), stillHeld };
      },
    },
    downloads: {
      download: async (wanted, asked) => {
        const arrived =
          changes.download === undefined ? asked.object.key : await changes.download(wanted, asked);
        if (typeof arrived === 'object') return arrived;
        if (arrived === undefined) return { instead: { kind: 'absent', reason: 'hole' } };
        return { received: { ...receivedAs('2024-01-15', ''), object: { ...asked.object, key: arrived } } };
      },
      together: changes.together ?? (() => undefined),
      bytesOf: changes.bytesOf ?? (() => 1),
    },
    outcomes: {
      written: () => Promise.resolve(),
      failed: changes.onFailed ?? fail,
      settled: changes.onSettled ?? settle,
    },
    rounds: {
      before: (round) => {
        rounds.push(round);
        return Promise.resolve();
      },
      substituted: changes.substituted ?? (() => Promise.resolve(undefined)),
    },
    live: { begin: () => () => undefined, during: (_stage, _subject, act) => act() },
    places,
    stop,
    refusal,
    createSpool: () => {
      const spool = new MemorySpool();
      spools.push(spool);
      return spool;
    },
  });
  const run = (plans: readonly PartitionPlan[]): Promise<void> => queue.run(iterate(plans));
  return { places, queue, run, stop, writes, failed, settled, rounds, spools };
}

async function* iterate(plans: Iterable<PartitionPlan>): AsyncGenerator<PartitionPlan> {
  for (const next of plans) yield await Promise.resolve(next);
}

export const fails = (code: ErrorCode): CryptodlError => new CryptodlError(code, 'said by the test');
