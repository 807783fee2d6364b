/** Compares rows of REST with rows of the archive for the same periods, new revisions with held ones, and months with held days. */
import { parsePeriod, startOfDay, type DayStart } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { isFromRest, type ObjectLine } from '../model/manifest-line.js';
import { rowSeconds, type DatasetSpec } from '../exchange/exchange-spec.js';
import { identityOf, instantExpression, writtenColumns } from './columns.js';
import type { Conversion, Overlap } from './conversion.js';
import { quoteName } from './sql.js';
import { isIn, readExisting, timeSpans } from './statements.js';

/** Relative difference up to which numbers count as equal: REST rounds ratios to four digits. */
const TOLERANCE = 0.001;

/** Compares the relation `rows` with the rows of the existing file that it replaces. The replaced lines must all come from one source. */
export async function compareOverlap(
  conversion: Conversion,
  replaced: readonly ObjectLine[],
): Promise<Overlap> {
  const isRestHeld = replaced.some(isFromRest);
  const counts = async (shiftMs: number): Promise<Overlap> => {
    const [row] = await conversion.duckdb.rows(overlapQuery(conversion, replaced, shiftMs));
    if (row === undefined) throw new CryptodlError('bug', 'a comparison has no result');
    const { compared, differing, onlyheld, onlynew } = row;
    const [onlyRest, onlyArchive] = isRestHeld ? [onlyheld, onlynew] : [onlynew, onlyheld];
    return {
      compared: Number(compared),
      differing: Number(differing),
      onlyRest: Number(onlyRest),
      onlyArchive: Number(onlyArchive),
    };
  };
  const plain = await counts(0);
  const seconds = rowSeconds(conversion.spec, conversion.series.interval);
  if (seconds === undefined || plain.differing * 2 <= plain.compared) return plain;
  for (const shiftMs of [-seconds * 1000, seconds * 1000]) {
    const shifted = await counts(shiftMs);
    if (shifted.differing * 2 < shifted.compared)
      return { ...shifted, labelsShiftMs: isRestHeld ? shiftMs : -shiftMs };
  }
  return plain;
}

/** The id column, which trades have; undefined for datasets whose rows are identified by time. */
function idColumnOf(spec: DatasetSpec): string | undefined {
  const [first] = spec.sort;
  const column = spec.columns.find(({ name }) => name === first);
  return column?.type === 'integer' ? column.name : undefined;
}

/** Compares rows of these objects in the existing file with `rows`, by id or time. `lost`: only in the file; `gained`: only in `rows`. */
export async function countChangedRows(
  conversion: Conversion,
  replaced: readonly ObjectLine[],
): Promise<{ readonly lost: number; readonly gained: number }> {
  const { spec } = conversion;
  const id = idColumnOf(spec);
  const key = id === undefined ? identityOf(spec, instantExpression(spec)) : quoteName(id);
  const held = `SELECT ${instantExpression(spec)} AS instant, ${key} AS key FROM ${readExisting(conversion)}`;
  const [row] = await conversion.duckdb.rows(
    `SELECT count(*) FILTER (WHERE n.key IS NULL) AS lost, count(*) FILTER (WHERE h.key IS NULL) AS gained
     FROM (SELECT key FROM (${held}) WHERE ${isIn(timeSpans(replaced))}) h
     FULL JOIN (SELECT ${key} AS key FROM rows) n ON h.key = n.key`,
  );
  return { lost: Number(row?.['lost']), gained: Number(row?.['gained']) };
}

function overlapQuery(conversion: Conversion, replaced: readonly ObjectLine[], shiftMs: number): string {
  const { spec } = conversion;
  const id = idColumnOf(spec);
  const numbers = writtenColumns(spec).filter(({ type, restOnly }) => type === 'number' && !restOnly);
  const select = (relation: string, shift: string): string =>
    `SELECT *, ${id === undefined ? identityOf(spec, 'instant') : quoteName(id)} AS key
     FROM (SELECT ${instantExpression(spec)} ${shift} AS instant, ${[
       ...(id === undefined ? [] : [quoteName(id)]),
       ...numbers.map(({ name }) => `TRY_CAST(${quoteName(name)} AS DOUBLE) AS ${quoteName(name)}`),
     ].join(', ')} FROM ${relation})`;
  const differs = numbers.map(({ name }) => {
    const a = `n.${quoteName(name)}`;
    const b = `h.${quoteName(name)}`;
    return `coalesce(abs(${a} - ${b}) > ${TOLERANCE} * greatest(abs(${a}), abs(${b})), false)`;
  });
  // `rows` may have more periods than were replaced.
  return `WITH h AS (SELECT * FROM (${select(readExisting(conversion), '')}) WHERE ${isIn(timeSpans(replaced))}),
      n AS (SELECT * FROM (${select('rows', `- (${shiftMs}) * INTERVAL 1 MILLISECOND`)}) WHERE ${isIn(replaced.map((line) => periodOf(line, spec)))})
    SELECT count(*) FILTER (WHERE h.key IS NOT NULL AND n.key IS NOT NULL) AS compared,
      count(*) FILTER (WHERE ${differs.join(' OR ')}) AS differing,
      count(*) FILTER (WHERE n.key IS NULL) AS onlyheld,
      count(*) FILTER (WHERE h.key IS NULL) AS onlynew
    FROM h FULL JOIN n ON h.key = n.key`;
}

/** The whole period, up to its last microsecond, because the archive may have rows after the last row of REST. */
function periodOf(line: ObjectLine, dayStart: DayStart): readonly [string, string] {
  const period = parsePeriod(line.cadence, line.period);
  if (period === undefined) return [line.first ?? '', line.last ?? ''];
  const last = new Date(startOfDay(period.to, dayStart) - 1).toISOString();
  return [new Date(startOfDay(period.from, dayStart)).toISOString(), last.replace('Z', '999Z')];
}
