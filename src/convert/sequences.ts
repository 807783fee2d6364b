/** Missing rows of an object: by its ids, and by silences, which the rate of its own rows tells. */
import { MAX_GAPS } from '../model/outcome.js';
import type { ResultRow } from './duckdb.js';
import { instantOfUs } from './row-times.js';
import { isJudgedByRate, missingIdsQuery, overlappingQuery, pausesQuery } from './object-stats-sql.js';
import { startOfDay } from '../model/calendar.js';
import type { SourceObject } from '../model/task.js';
import type { Conversion } from './conversion.js';

/**
 * The ids of the object of this row of `statsQuery`, and the times around missing ones. Rows are searched only where the first and the last id, the number of rows and their order
 * do not prove that no id is missing.
 */
export async function sequenceOf({ duckdb, spec }: Conversion, stats: ResultRow) {
  const [first, last] = [Number(stats['first_id']), Number(stats['last_id'])];
  if (spec.sequence === undefined || !(first >= 0 && last <= Number.MAX_SAFE_INTEGER)) return { gaps: [] };
  const isOrdered = Number(stats['unordered']) === 0;
  const { range, isGapless } = spec.sequence;
  const ordinal = Number(stats['ord']);
  const hasBreaks = range !== undefined && (!isOrdered || Number(stats['breaks']) > 0);
  const isWhole =
    isOrdered && last - first + 1 === Number(stats['rows']) && !(hasBreaks && isGapless === true);
  const found = isWhole ? [] : await duckdb.rows(missingIdsQuery(spec, ordinal, MAX_GAPS));
  const missing = Number(found[0]?.['total'] ?? 0);
  const [ranges] = hasBreaks ? await duckdb.rows(overlappingQuery(spec, ordinal)) : [];
  const overlapping = Number(ranges?.['overlapping'] ?? 0);
  return {
    ids: {
      first,
      last,
      ...(range === undefined
        ? {}
        : { range: { first: Number(stats['range_first']), last: Number(stats['range_last']) } }),
      ...(missing === 0 ? {} : { missing }),
      ...(overlapping === 0 ? {} : { overlapping }),
    },
    // A gap is never empty: rows of one microsecond may have missing ids between them.
    gaps: found.map((place) => {
      const [sinceUs, untilUs] = [Number(place['since']), Number(place['until'])];
      return [instantOfUs(Math.min(sinceUs, untilUs)), instantOfUs(Math.max(sinceUs + 1, untilUs))] as const;
    }),
  };
}

/** A silence is this many times as long as each pause that is none, so at the rate of the rest it would have at least this many rows. */
const FACTOR = 10;
/** Fewer rows have no rate. */
const FEWEST_ROWS = 10;
/** With more silences, they are the way in which this symbol is traded. */
const MOST = 8;

/** Microseconds since the epoch, `[from, to)`. */
type Pause = readonly [from: number, to: number];

const lengthOf = ([from, to]: Pause): number => to - from;

/**
 * The pauses that are silences, in order of time. `pauses`: the times without rows that are at least a tenth of a silence long, also those before
 * the first and after the last row. Between two silences there are rows for at least the time of a short silence: single rows between long
 * pauses are a symbol that is rarely traded. A silence is at least `leastUs` microseconds long.
 */
export function silencesAmong(
  pauses: readonly Pause[],
  { rows, leastUs }: { readonly rows: number; readonly leastUs: number },
): Pause[] {
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
      silences.slice(1).every(([start], index) => start - (silences[index]?.[1] ?? start) >= leastUs);
    if (isFound) return silences;
  }
  return [];
}

/**
 * The silences of the object of this row of `statsQuery`. Of rows with ids that leave out none, only those before the first row
 * and after the last one: ids prove more between them. `gaps`: ISO instants `[from, to)`. `silent`: the sides of an object with ids.
 */
export async function silencesOf(
  { duckdb, spec }: Conversion,
  { period, rest }: SourceObject,
  stats: ResultRow,
) {
  const { rate } = spec;
  if (rate === undefined || rest?.open === true) return {};
  const [first, last] = [Number(stats['first_us']), Number(stats['last_us'])];
  const edges = {
    begin: [Math.min(first, startOfDay(period.from, spec) * 1000), first],
    end: [last, Math.max(last, startOfDay(period.to, spec) * 1000)],
  } as const;
  const leastUs = rate.silenceSeconds * 1e6;
  const pause = Number(stats['pause'] ?? 0);
  if (Math.max(pause, lengthOf(edges.begin), lengthOf(edges.end)) < leastUs) return {};
  const searched = { isOrdered: Number(stats['unordered']) === 0, leastUs: leastUs / FACTOR };
  const inner = await duckdb.rows(pausesQuery(spec, Number(stats['ord']), searched));
  const pauses = inner.map(({ since, until }) => [Number(since), Number(until)] as const);
  const all = silencesAmong([edges.begin, edges.end, ...pauses], { rows: Number(stats['rows']), leastUs });
  if (isJudgedByRate(spec))
    return { gaps: all.map(([from, to]) => [instantOfUs(from), instantOfUs(to)] as const) };
  const silent = (['begin', 'end'] as const).filter((side) => all.includes(edges[side]));
  return silent.length === 0 ? {} : { silent };
}
