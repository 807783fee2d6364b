/** Runs many damaged bodies through a part of the product, counts what came of them, and names the seed of a failure. */
import { Worker } from 'node:worker_threads';
import { CryptodlError } from '../../src/model/errors.js';
import type { Random } from './mutations.js';
import { randomOf } from './mutations.js';

/** The default is 100,000 bodies in all. */
const TIMES = process.env['CRYPTODL_TORTURE'] === 'full' ? 10 : 1;
/** The first seed: a failure's own seed repeats that failure at once. */
const FIRST_SEED = Number(process.env['CRYPTODL_TORTURE_SEED'] ?? 1);
/** Seconds after which a body, which takes milliseconds, is taken for one that never ends. */
const HANG_SECONDS = 60;

export interface Torture {
  readonly kind: string;
  readonly count: number;
  /** The bodies are a list, which is gone through once. */
  readonly isList?: true;
}

/** What came of a damaged body, in words that are counted. */
export type Trial = (random: Random, seed: number) => Promise<string> | string;

/** Rejects with the kind and the seed of the first body that went wrong. */
export async function torture(
  { kind, count, isList }: Torture,
  trial: Trial,
): Promise<ReadonlyMap<string, number>> {
  const outcomes = new Map<string, number>();
  const total = isList === true ? count : count * TIMES;
  const watch = watchForHangs(kind);
  const start = performance.now();
  try {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + total; seed += 1) {
      watch.working(seed);
      const outcome = await tried(kind, seed, trial);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  } finally {
    await watch.stop();
  }
  const counts = [...outcomes].sort((a, b) => b[1] - a[1]).map(([what, times]) => `${times} ${what}`);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  process.stderr.write(`${kind}: ${total} mutations in ${seconds} s: ${counts.join(', ')}\n`);
  return outcomes;
}

async function tried(kind: string, seed: number, trial: Trial): Promise<string> {
  try {
    return await trial(randomOf(seed), seed);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${kind}, CRYPTODL_TORTURE_SEED=${seed}: ${text}`, { cause: error });
  }
}

/** The code of a typed refusal that is about content; everything else is thrown on. */
export function refusedAs(error: unknown, codes: readonly string[]): string {
  if (error instanceof CryptodlError && codes.includes(error.code)) return `refused as ${error.code}`;
  throw error;
}

/**
 * A thread of its own, because an endless loop in the main thread stops all its timers. It counts its own seconds, so that
 * a machine that was asleep is no hang.
 */
const WATCH = `
const { workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
const seed = new Int32Array(workerData.shared);
let seen = 0, seconds = 0;
while (Atomics.load(seed, 1) === 0) {
  Atomics.wait(seed, 1, 0, 1000);
  const now = Atomics.load(seed, 0);
  seconds = now === seen ? seconds + 1 : 0;
  seen = now;
  if (seconds < workerData.limit) continue;
  writeSync(2, workerData.kind + ', CRYPTODL_TORTURE_SEED=' + now + ': no end after ' + seconds + ' s\\n');
  process.kill(process.pid, 'SIGKILL');
}`;

function watchForHangs(kind: string): { working: (seed: number) => void; stop: () => Promise<unknown> } {
  const shared = new SharedArrayBuffer(8);
  const state = new Int32Array(shared);
  const worker = new Worker(WATCH, { eval: true, workerData: { shared, kind, limit: HANG_SECONDS } });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  return {
    working: (seed) => void Atomics.store(state, 0, seed),
    stop: () => {
      Atomics.store(state, 1, 1);
      Atomics.notify(state, 1);
      return ended;
    },
  };
}
