/** Rows of held objects that conflict, and values that cannot be right. The lake has these rows, so the missing rows do not include them. */
import type { IdRange, Suspicious } from '../../model/outcome.js';
import { countText } from '../../model/units.js';
import type { HeldSpan } from '../held-objects.js';

export interface Doubts {
  /** Rows that share the key, the bar or the trades of another row. */
  readonly conflicts: number;
  /** One for each kind. Its `first` is the first such row of all objects. */
  readonly suspicious: readonly Suspicious[];
}

/** The doubts of objects in order of their days. `hasIds`: the ids of the rows go on from object to object. */
export function doubtsOf(objects: readonly HeldSpan[], hasIds: boolean): Doubts {
  let conflicts = 0;
  for (const [index, { facts }] of objects.entries()) {
    conflicts += (facts.idConflicts ?? 0) + (facts.ids?.overlapping ?? 0);
    const before = objects[index - 1]?.facts.ids;
    if (!hasIds || before === undefined || facts.ids === undefined) continue;
    // A range of trade ids tells no number of aggregates: there are not more of them than ids, and not more than rows.
    const ofTrades = Math.min(sharedIds(before.range, facts.ids.range), facts.rows ?? 0);
    conflicts += sharedIds(before, facts.ids) || ofTrades;
  }
  return { conflicts, suspicious: byKind(objects.flatMap(({ facts }) => facts.suspicious ?? [])) };
}

/** Ids that begin anew overlap nothing. */
function sharedIds(before: IdRange | undefined, ids: IdRange | undefined): number {
  if (before === undefined || ids === undefined || ids.first <= before.first) return 0;
  return Math.max(0, Math.min(before.last, ids.last) - ids.first + 1);
}

function byKind(all: readonly Suspicious[]): Suspicious[] {
  const kinds = new Map<string, Suspicious>();
  for (const one of all) {
    const known = kinds.get(one.kind);
    kinds.set(one.kind, known === undefined ? one : { ...known, rows: known.rows + one.rows });
  }
  return [...kinds.values()];
}

export class DoubtSums {
  #conflicts = 0;
  #seriesInConflict = 0;
  #suspicious: readonly Suspicious[] = [];

  /** `name`: the series. It stands before the first row of each kind. */
  add(name: string, { conflicts, suspicious }: Doubts): void {
    this.#conflicts += conflicts;
    if (conflicts > 0) this.#seriesInConflict += 1;
    const named = suspicious.map((one) => ({ ...one, first: `${name} ${one.first}` }));
    this.#suspicious = byKind([...this.#suspicious, ...named]);
  }

  get sums(): Doubts {
    return { conflicts: this.#conflicts, suspicious: this.#suspicious };
  }

  /** `conflicts: 12 rows in 2 series`, then a line per kind: `suspicious: 3 rows zero, first BTCUSDT 2024-01-15T00:03:00Z open 0`. Empty without doubts. */
  lines(): string[] {
    const inSeries = `in ${countText(this.#seriesInConflict, 'series')}`;
    return [
      ...(this.#conflicts === 0 ? [] : [`conflicts: ${countText(this.#conflicts, 'row')} ${inSeries}`]),
      ...this.#suspicious.map(
        ({ kind, rows, first }) => `suspicious: ${countText(rows, 'row')} ${kind}, first ${first}`,
      ),
    ];
  }
}
