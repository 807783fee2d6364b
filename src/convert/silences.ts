/** Silences in rows at irregular times: missing rows, judged by the rate of the object's own rows. */
import { startOfDay } from '../model/calendar.js';
import type { ArchiveObject } from '../model/task.js';
import type { Conversion } from './conversion.js';
import type { DuckDbSession, Row } from './duckdb.js';
import { instantText } from './row-times.js';
import { isJudgedByRate, pausesQuery } from './statements.js';

/** A silence is this many times as long as each pause that is none, so at the rate of the rest it would have at least this many rows. */
const FACTOR = 10;
/** Fewer rows have no rate. */
const FEWEST_ROWS = 10;
/** With more silences, they are the way in which this symbol is traded. */
const MOST = 8;

/** Microseconds since the epoch, `[from, to)`. */
type Pause = readonly [from: number, to: number];

interface Rows {
  readonly rows: number;
  /** A silence is at least this many microseconds long. */
  readonly leastUs: number;
}

function lengthOf([from, to]: Pause): number {
  return to - from;
}

/**
 * The pauses that are silences, in order of time. `pauses`: the times without rows that are at least a tenth of a silence long, also those before
 * the first and after the last row. Between two silences there are rows for at least the time of a short silence: single rows between long
 * pauses are a symbol that is rarely traded.
 */
export function silencesAmong(pauses: readonly Pause[], { rows, leastUs }: Rows): Pause[] {
  if (rows < FEWEST_ROWS) return [];
  const longest = pauses.toSorted((a, b) => lengthOf(b) - lengthOf(a));
  for (let count = Math.min(MOST, longest.length); count > 0; count -= 1) {
    const silences = longest.slice(0, count).sort(([a], [b]) => a - b);
    const shortest = Math.min(...silences.map(lengthOf));
    const next = longest[count];
    const pause = next === undefined ? leastUs / FACTOR : lengthOf(next);
    const isFound =
      shortest >= leastUs &&
      shortest >= FACTOR * pause &&
      activeBetween(silences).every((us) => us >= leastUs);
    if (isFound) return silences;
  }
  return [];
}

/** The lengths of the times with rows between each two silences. */
function activeBetween(silences: readonly Pause[]): number[] {
  return silences.slice(1).map(([start], index) => start - (silences[index]?.[1] ?? start));
}

/**
 * The silences of the object of this row of `statsQuery`, as ISO instants. Ids that leave out none prove more than a rate.
 */
export async function silencesOf(
  session: DuckDbSession,
  { spec }: Conversion,
  { period, rest }: ArchiveObject,
  stats: Row,
): Promise<[string, string][]> {
  const { rate } = spec;
  if (rate === undefined || !isJudgedByRate(spec) || rest?.open === true) return [];
  const [first, last, pause] = ['first_us', 'last_us', 'pause'].map((name) => Number(stats[name])) as [
    number,
    number,
    number,
  ];
  const bounds = [
    Math.min(first, startOfDay(period.from, spec) * 1000),
    Math.max(last, startOfDay(period.to, spec) * 1000),
  ] as const;
  const leastUs = rate.silenceSeconds * 1e6;
  const edges = [
    [bounds[0], first],
    [last, bounds[1]],
  ] as const;
  if (Math.max(pause, ...edges.map(lengthOf)) < leastUs) return [];
  const isOrdered = Number(stats['unordered']) === 0;
  const inner = await session.rows(
    pausesQuery(spec, Number(stats['ord']), { isOrdered, leastUs: leastUs / FACTOR }),
  );
  const pauses = inner.map(({ since, until }) => [Number(since), Number(until)] as const);
  return silencesAmong([...edges, ...pauses], { rows: Number(stats['rows']), leastUs }).map(([from, to]) => [
    instantText(from),
    instantText(to),
  ]);
}
