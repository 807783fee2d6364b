/** The rows of a universe, and their forms: CSV, NDJSON, a list, Parquet. */
import type { DuckDbSession } from '../convert/duckdb.js';
import type { Cell } from '../convert/query-stream.js';
import { quoteName, quotePath, quoteText } from '../convert/sql.js';
import { dayText } from '../model/calendar.js';
import type { Measure } from '../options/periods.js';

export interface Member {
  /** The first day of the period. */
  readonly period: number;
  readonly symbol: string;
  readonly rank: number;
  /** A decimal without exponent. */
  readonly value: string;
  /** Days of the window with rows. */
  readonly days: number;
  /** The first day with rows. */
  readonly firstDay: number;
}

const COLUMNS = ['period', 'symbol', 'rank', 'value', 'days', 'first_day'] as const;

/** All members, ordered by period and rank, in batches. */
export async function* membersOf(session: DuckDbSession): AsyncGenerator<Member[]> {
  const result = await session.select(`SELECT ${COLUMNS.join(', ')} FROM member ORDER BY period, rank`);
  if (result === undefined) return;
  for await (const rows of result.batches)
    yield rows.map(([period, symbol, rank, value, days, firstDay]) => ({
      period: Number(period),
      symbol: textOf(symbol),
      rank: Number(rank),
      value: plainDecimal(textOf(value)),
      days: Number(days),
      firstDay: Number(firstDay),
    }));
}

/** Symbols and decimals are text. */
function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell : '';
}

/** `12.3400` → `12.34`, `5.000` → `5`. */
function plainDecimal(text: string): string {
  return text.includes('.') ? text.replace(/(?:\.|(?<![.0]))0+$/, '') : text;
}

/** Counts are numbers; sums of volumes are text with all digits. */
export function memberFields(
  { period, symbol, rank, value, days, firstDay }: Member,
  by: Measure,
): Readonly<Record<string, string | number>> {
  return {
    period: dayText(period),
    symbol,
    rank,
    [by]: by === 'count' ? Number(value) : value,
    days,
    first_day: dayText(firstDay),
  };
}

/** Each symbol once, in order. */
export async function symbolsOf(session: DuckDbSession): Promise<string[]> {
  const rows = await session.rows('SELECT DISTINCT symbol FROM member ORDER BY symbol');
  return rows.map((row) => String(row['symbol']));
}

/** Mark of the Parquet files of this verb, in their metadata. */
const MARK = 'cryptodl universe';

/** Writes all members to a Parquet file. */
export async function writeParquet(session: DuckDbSession, path: string, by: Measure): Promise<void> {
  const epoch = "DATE '1970-01-01'";
  await session.run(`COPY (
SELECT ${epoch} + period AS period, symbol, CAST(rank AS INTEGER) AS rank,
  CAST(value AS ${by === 'count' ? 'BIGINT' : 'DOUBLE'}) AS ${quoteName(by)},
  CAST(days AS INTEGER) AS days, ${epoch} + first_day AS first_day
FROM member ORDER BY period, rank)
TO ${quoteText(path)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {made_by: ${quoteText(MARK)}})`);
}

/** Whether a file is a Parquet file of this verb. */
export async function isOwnParquet(session: DuckDbSession, path: string): Promise<boolean> {
  try {
    const rows = await session.rows(
      `SELECT decode(value) AS made_by FROM parquet_kv_metadata(${quotePath(path)}) WHERE decode(key) = 'made_by'`,
    );
    return rows.some((row) => row['made_by'] === MARK);
  } catch {
    return false;
  }
}
