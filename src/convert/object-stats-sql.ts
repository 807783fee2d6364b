/** The SQL that counts and describes the rows of each object. */
import { rowSeconds, type DatasetSpec } from '../exchange/exchange-spec.js';
import type { Series } from '../model/task.js';
import { instantExpression, sortExpression, identityOf } from './columns.js';
import type { SqlContext } from './conversion.js';
import { LEGAL, sortKey, ORDINAL, NUMBER, columnOf, names } from './statements.js';
import { quoteName } from './sql.js';

/** Per object: rows, first and last time, invalid rows, rows off the grid, and rows that are not after the previous row. */
export function statsQuery({ spec, series }: SqlContext): string {
  const key = sortKey(spec);
  const ids = idsOf(spec);
  const counted =
    ids === undefined
      ? ''
      : `, min(low) AS first_id, max(low) AS last_id, min(range_low) AS range_first, max(range_high) AS range_last, count_if(range_low ${spec.sequence?.isGapless === true ? '<> range_before + 1' : '<= range_before'}) AS breaks`;
  const isPaced = isJudgedByRate(spec);
  const pause = isPaced ? ', max(abs(epoch_us(instant) - epoch_us(instant_before))) AS pause' : '';
  const bounds =
    spec.rate === undefined ? '' : ', epoch_us(min(instant)) AS first_us, epoch_us(max(instant)) AS last_us';
  const before = `${ids === undefined ? '' : ', lag(range_high) OVER () AS range_before'}${isPaced ? ', lag(instant) OVER () AS instant_before' : ''}`;
  const read =
    ids === undefined ? '' : `, ${ids.id} AS low, ${ids.firstId} AS range_low, ${ids.lastId} AS range_high`;
  return `SELECT ord, count(*) AS rows, min(instant) AS first, max(instant) AS last,
      count_if(NOT legal) AS wrong, count_if(${offGridExpression(spec, series)}) AS off_grid, count_if(previous IS NOT NULL AND NOT (key > previous)) AS unordered${counted}${pause}${bounds}
    FROM (SELECT *, lag(key) OVER () AS previous${before}
          FROM (SELECT ${ORDINAL} AS ord, ${NUMBER} AS number, ${LEGAL} AS legal, ${instantExpression(spec)} AS instant, ${key} AS key${read} FROM rows))
    GROUP BY ord ORDER BY min(number)`;
}

/** Whether the rate of the rows tells that some are missing between others. Ids that leave out none prove more. */
export const isJudgedByRate = ({ rate, sequence }: DatasetSpec): boolean =>
  rate !== undefined && sequence === undefined;

/** The times from row to row of an object that are at least `leastUs` long, in microseconds since the epoch. */
export const pausesQuery = (
  spec: DatasetSpec,
  ordinal: number,
  { isOrdered, leastUs }: { readonly isOrdered: boolean; readonly leastUs: number },
): string =>
  `SELECT since, until
    FROM (SELECT until, lag(until) OVER (${isOrdered ? '' : 'ORDER BY until'}) AS since
          FROM (SELECT epoch_us(${instantExpression(spec)}) AS until FROM rows WHERE ${ORDINAL} = ${ordinal}))
    WHERE until - since >= ${leastUs}`;

/** Expressions for the id of a row, and for the first and last id of its range; undefined for a dataset whose ids prove nothing. */
function idsOf(spec: DatasetSpec): { id: string; firstId: string; lastId: string } | undefined {
  const { sequence } = spec;
  if (sequence === undefined) return undefined;
  const expression = (name: string): string => sortExpression(columnOf(spec, name));
  const { id, range: [from, to] = [id, id] } = sequence;
  return { id: expression(id), firstId: expression(from), lastId: expression(to) };
}

/**
 * The places of an object where ids are missing (`missing` above 0), with the times before and after, and the rows whose range overlaps an
 * earlier one (`missing` below 1), in the order of ids. `of`: the ids, or the ranges.
 */
function seamsOf(spec: DatasetSpec, ordinal: number, of: 'ids' | 'ranges'): string {
  const { id = '', firstId = '', lastId = '' } = idsOf(spec) ?? {};
  const [low, high] = of === 'ids' ? [id, id] : [firstId, lastId];
  return `(SELECT low - before - 1 AS missing, epoch_us(time_before) AS since, epoch_us(instant) AS until, low
    FROM (SELECT *, max(high) OVER earlier AS before, max(instant) OVER earlier AS time_before
          FROM (SELECT ${low} AS low, ${high} AS high, ${instantExpression(spec)} AS instant FROM rows WHERE ${ORDINAL} = ${ordinal})
          WINDOW earlier AS (ORDER BY low, high ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
    WHERE low <> before + 1)`;
}

/** Missing ids of an object (of ranges without gaps: ids within them), and the times of at most `most` places where they are missing. */
export function missingIdsQuery(spec: DatasetSpec, ordinal: number, most: number): string {
  const seams = seamsOf(spec, ordinal, spec.sequence?.isGapless === true ? 'ranges' : 'ids');
  return `SELECT since, until, total FROM (SELECT *, sum(missing) OVER () AS total FROM ${seams} WHERE missing > 0) ORDER BY low LIMIT ${most}`;
}

export const overlappingQuery = (spec: DatasetSpec, ordinal: number): string =>
  `SELECT count(*) FILTER (WHERE missing < 0) AS overlapping FROM ${seamsOf(spec, ordinal, 'ranges')}`;

/**
 * Ordinal and time of the rows of these objects, in microseconds since the epoch. Regular times: without exact duplicates, which ordered rows do not have.
 * A schedule: the scheduled minute, with the hours since the row before, in order of time. Others: the start of each hour with rows, because a month of trades has
 * too many rows for memory.
 */
export function timesQuery(
  { spec, series }: SqlContext,
  ordinals: readonly number[],
  isOrdered: boolean,
): string {
  const instant = instantExpression(spec);
  const own = `FROM rows WHERE ${ORDINAL} IN (${ordinals.join(', ')})`;
  if (rowSeconds(spec, series.interval) !== undefined) {
    const us = usOf(`epoch_us(${instant})`);
    return `SELECT ord, us FROM (SELECT ${isOrdered ? us : `DISTINCT ${names(spec)}, ${us}`}, ${ORDINAL} AS ord ${own})`;
  }
  const { hoursSinceLast } = spec;
  if (hoursSinceLast === undefined)
    return `SELECT DISTINCT ${ORDINAL} AS ord, ${usOf(`epoch_us(${instant}) // 3600000000 * 3600000000`)} ${own}`;
  const hours = `max(CAST(${quoteName(hoursSinceLast)} AS DOUBLE)) AS hours`;
  return `SELECT ${ORDINAL} AS ord, ${usOf(`epoch_us(${identityOf(spec, instant)})`)}, ${hours} ${own} GROUP BY ALL ORDER BY us`;
}

const usOf = (time: string): string => `CAST(${time} AS DOUBLE) AS us`;

/** SQL expression that is true for a row that is not on the time grid of its interval. */
function offGridExpression(spec: DatasetSpec, { interval }: Series): string {
  const seconds = rowSeconds(spec, interval);
  return seconds === undefined ? 'false' : `epoch_us(instant) % ${seconds * 1e6} <> 0`;
}
