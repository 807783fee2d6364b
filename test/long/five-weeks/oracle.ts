/**
 * Computes which rows a lake holds after each run, from the published history and the rules of README.md and docs/. It uses
 * no code of the program.
 */
import { nameOf, ROWS_PER_DAY, textOf } from './rows.js';
import type { Row, Series } from './rows.js';
import { keyOf } from './world.js';
import type { Flaw, Publication, World } from './world.js';

/** --recheck-days: behind the first held day of a series, every run looks at these as well. They end with the last held day if it is older. */
const WINDOW = 7;

/** The failure of each flaw, and its exit code: 3 for what may succeed later. */
const FAILURES: Readonly<Record<Flaw, { readonly code: string; readonly exitCode: 3 | 4 }>> = {
  'stale-sidecar': { code: 'sidecar-stale', exitCode: 3 },
  'broken-zip': { code: 'zip-broken', exitCode: 4 },
  'malformed-row': { code: 'row-malformed', exitCode: 4 },
};

interface Held {
  rows: readonly Row[];
  /** Of the last revision that was looked at. */
  etag: string;
}

/** The expected results of one run, by key. */
export interface Expected {
  exitCode: 0 | 3 | 4;
  /** Outcome of every object that is to be fetched. */
  readonly outcomes: Map<string, string>;
  readonly failures: Map<string, string>;
  /** Revisions that replace rows of the lake. */
  readonly changed: Set<string>;
  /** Revisions with fewer rows than are held: the held ones stay. */
  readonly shrunk: Set<string>;
  /** Held objects that the archive has no more, of a file that takes a revision of another day. */
  readonly carried: Set<string>;
  /** `key@etag` → most requests of this run. */
  readonly requests: Map<string, number>;
}

export class Oracle {
  readonly #world: World;
  readonly #lake = new Map<string, Map<number, Held>>();
  /** Revisions that were fetched and could not be taken, with the state of their sidecars. */
  readonly #refused = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  /** A run over the last `days` of these series. A series that the lake lacks is taken from the day `ordered` on. */
  run(today: number, series: readonly Series[], days: number, ordered: number): Expected {
    const expected: Expected = {
      exitCode: 0,
      outcomes: new Map(),
      failures: new Map(),
      changed: new Set(),
      shrunk: new Set(),
      carried: new Set(),
      requests: new Map(),
    };
    for (const one of series) {
      const held = this.#heldOf(one);
      const changedDays: number[] = [];
      const since = Math.max(this.#windowOf(one, today), this.days(one)[0] ?? ordered);
      for (let day = Math.min(since, today - days); day < today; day += 1) {
        const published = this.#world.of(one, day);
        if (published === undefined || held.get(day)?.etag === published.etag) continue;
        if (this.#meet(published, held, expected)) changedDays.push(day);
      }
      this.#noteCarried(one, changedDays, today, expected);
    }
    return expected;
  }

  /** Cells of the rows of a series, in the order of their days. */
  rows(series: Series): string[] {
    return [...this.#heldOf(series)]
      .sort(([a], [b]) => a - b)
      .flatMap(([, { rows }]) => rows.map(({ cells }) => cells));
  }

  days(series: Series): number[] {
    return [...this.#heldOf(series).keys()].sort((a, b) => a - b);
  }

  #windowOf(series: Series, today: number): number {
    return Math.min(today, (this.days(series).at(-1) ?? today) + 1) - WINDOW;
  }

  #heldOf(series: Series): Map<number, Held> {
    const held = this.#lake.get(nameOf(series)) ?? new Map<number, Held>();
    this.#lake.set(nameOf(series), held);
    return held;
  }

  /** A revision that is not the held one; says whether it replaces rows. */
  #meet(published: Publication, held: Map<number, Held>, expected: Expected): boolean {
    const { key, day, etag, flaw, rows, series } = published;
    const before = held.get(day);
    const revision = `${key}@${etag}`;
    // An object that its sidecar contradicts is asked for twice more, past caches. No later run asks for it.
    const isKnown = flaw !== undefined && this.#refused.has(revision);
    expected.requests.set(revision, isKnown ? 0 : flaw === 'stale-sidecar' ? 3 : 1);
    if (flaw !== undefined) {
      this.#refused.add(revision);
      const { code, exitCode } = FAILURES[flaw];
      expected.outcomes.set(key, 'failed');
      expected.failures.set(key, code);
      if (expected.exitCode !== 3) expected.exitCode = exitCode;
      return false;
    }
    const isShort = series.dataset !== 'aggTrades' && rows.length < ROWS_PER_DAY[series.dataset];
    expected.outcomes.set(key, isShort ? 'partial' : 'ok');
    if (before !== undefined && rows.length < before.rows.length) {
      before.etag = etag;
      expected.shrunk.add(key);
      return false;
    }
    held.set(day, { rows, etag });
    if (before === undefined) return false;
    expected.changed.add(key);
    return true;
  }

  #noteCarried(series: Series, changedDays: readonly number[], today: number, expected: Expected): void {
    // A file of trades holds one day.
    if (series.dataset === 'aggTrades') return;
    const months = new Set(changedDays.map(monthOf));
    const since = this.#windowOf(series, today);
    for (const day of this.days(series))
      if (day >= since && months.has(monthOf(day)) && this.#world.of(series, day) === undefined)
        expected.carried.add(keyOf(series, textOf(day)));
  }
}

function monthOf(day: number): string {
  return textOf(day).slice(0, 7);
}
