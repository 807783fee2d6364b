/** The ids of an object: missing ones, and ranges that overlap. */
import { MAX_GAPS } from '../model/outcome.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { DatasetSpec } from '../source/venue.js';
import type { DuckDbSession, Row } from './duckdb.js';
import { instantText } from './row-times.js';
import { missingIdsQueries, overlappingQuery } from './statements.js';

export interface Sequence {
  readonly ids?: NonNullable<ObjectLine['ids']>;
  /** The times around missing ids. */
  readonly gaps: readonly (readonly [string, string])[];
}

/**
 * The ids of the object of this row of `statsQuery`. Rows are searched only where the first and the last id, the number of rows and their order
 * do not prove that no id is missing.
 */
export async function sequenceOf(session: DuckDbSession, spec: DatasetSpec, stats: Row): Promise<Sequence> {
  const [ordinal, first, last] = ['ord', 'first_id', 'last_id'].map((name) => Number(stats[name])) as [
    number,
    number,
    number,
  ];
  if (spec.sequence === undefined || !(first >= 0 && last <= Number.MAX_SAFE_INTEGER)) return { gaps: [] };
  const isOrdered = Number(stats['unordered']) === 0;
  const { range, isGapless } = spec.sequence;
  const hasBreaks = range !== undefined && (!isOrdered || Number(stats['breaks']) > 0);
  const isWhole =
    isOrdered && last - first + 1 === Number(stats['rows']) && !(hasBreaks && isGapless === true);
  const [total, places] = missingIdsQueries(spec, ordinal, MAX_GAPS);
  const [counted] = isWhole ? [] : await session.rows(total);
  const missing = Number(counted?.['missing'] ?? 0);
  const found = missing === 0 ? [] : await session.rows(places);
  const [ranges] = hasBreaks ? await session.rows(overlappingQuery(spec, ordinal)) : [];
  const overlapping = Number(ranges?.['overlapping'] ?? 0);
  return {
    ids: {
      first,
      last,
      ...(missing === 0 ? {} : { missing }),
      ...(overlapping === 0 ? {} : { overlapping }),
    },
    gaps: found.map(({ since, until }) => gapOf(Number(since), Number(until))),
  };
}

/** A gap is never empty: rows of one microsecond may have missing ids between them. */
function gapOf(since: number, until: number): readonly [string, string] {
  return [instantText(Math.min(since, until)), instantText(Math.max(since + 1, until))];
}
