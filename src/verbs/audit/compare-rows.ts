/** Compares the rows of two sides by their values: rows that differ, and rows that only one side has. */
import { instantExpression } from '../../convert/columns.js';
import type { DuckDb, Row } from '../../convert/duckdb.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { DAY_MS, dayText } from '../../model/calendar.js';
import type { ColumnSpec } from '../../exchange/facts.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Conversion } from '../../convert/conversion.js';
import { readObjects } from '../../convert/read-objects.js';
import { removeScratch } from '../../convert/load-rows.js';
import type { ReadObjects } from '../../convert/read-objects.js';
import type { CryptodlError, ErrorCode } from '../../model/errors.js';
import type { ArchiveObject, Series, Settings } from '../../model/task.js';
import { listText, numberText } from '../../model/units.js';

export interface AuditFinding {
  /**
   * - `rows-missing`: rows that only the daily objects have. `rows-extra`: rows that only the monthly object has.
   * - `rows-differ`: rows with the same key and different values.
   * - `ids-missing`: ids that no object has.
   * Against REST, `rows-missing` are rows that only REST has, and `rows-extra` rows that only the lake has.
   */
  readonly kind: 'rows-missing' | 'rows-extra' | 'rows-differ' | 'ids-missing';
  readonly key: string;
  /** Number of affected rows (or ids). */
  readonly rows: number;
  /** `2024-01-15`, ascending. */
  readonly days?: readonly string[];
  /** Columns that differ, with the number of rows. */
  readonly columns?: Readonly<Record<string, number>>;
  /** The first case: sort key, ids, values of both sides. */
  readonly example?: Readonly<Record<string, unknown>>;
}

/** The result for one month of one series; against REST, for a day or a month. */
export interface AuditedMonth {
  readonly series: Series;
  /** `2024-01`, or `2024-01-15` */
  readonly month: string;
  readonly findings: readonly AuditFinding[];
  /** Objects that could not be downloaded or read, by key. */
  readonly failed: ReadonlyMap<string, CryptodlError>;
  /** Days with a daily object. */
  readonly days: ReadonlySet<number>;
  /** Rows of the compared daily objects, or of the lake; 0: nothing was compared. */
  readonly rows: number;
  /** Rows of the monthly object on days that have no readable daily object. */
  readonly rowsWithoutDay: number;
}

/** A finding, or an object that could not be read, as it is printed with --json and given by the library. */
export type AuditItem = Series & { /** `2024-01`, or `2024-01-15` */ readonly month: string } & (
    | ({ readonly event: 'finding'; readonly text: string } & AuditFinding)
    | {
        readonly event: 'failed';
        readonly key: string;
        readonly code: ErrorCode;
        readonly retryable: boolean;
        readonly message: string;
      }
  );

/** The findings of a month, then its failed objects. */
export function* itemsOfMonth({ series, month, findings, failed }: AuditedMonth): Generator<AuditItem> {
  for (const finding of findings)
    yield { event: 'finding', ...series, month, ...finding, text: findingText(finding) };
  for (const [key, { code, retryable, message }] of failed)
    yield { event: 'failed', ...series, month, key, code, retryable, message };
}

/** The text without series, month and kind: `2 rows, close (2); first open_time 2024-01-05 04:00:00, …`. */
function findingText({ kind, rows, days = [], columns = {}, example }: AuditFinding): string {
  const unit = kind === 'ids-missing' ? 'id' : 'row';
  const parts = [
    `${numberText(rows)} ${unit}${rows === 1 ? '' : 's'}`,
    listText(days),
    ...Object.entries(columns).map(([name, count]) => `${name} (${numberText(count)})`),
  ];
  const cells = Object.entries(example ?? {}).map(([name, value]) => `${name} ${String(value)}`);
  const first = cells.length === 0 ? '' : `; first ${cells.join(', ')}`;
  return `${parts.filter(Boolean).join(', ')}${first}`;
}

/** One side of a comparison. `rows`: what is compared, as the text after FROM; `all`: the rows that the other side need not have more of, by default `rows`. */
interface Side {
  readonly name: string;
  readonly rows: string;
  readonly all?: string;
}

/** The number of the day of a row. */
export function dayExpression(spec: DatasetSpec): string {
  return `((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS})`;
}

/** In the order of the findings. `rows-missing`: only the second side has them; `rows-extra`: only the first one. */
const KINDS = ['rows-differ', 'rows-missing', 'rows-extra'] as const;

/** Compares these columns. EXCEPT drops repeated rows, which are not a difference. `key`: that of the affected object. */
export async function compareRows(
  duckdb: DuckDb,
  { key, spec }: { readonly key: string; readonly spec: DatasetSpec },
  columns: readonly ColumnSpec[],
  sides: readonly [Side, Side],
): Promise<AuditFinding[]> {
  const names = columns.filter(({ type }) => type !== 'symbol').map(({ name }) => name);
  const values = names.filter((name) => !spec.sort.includes(name));
  const ofSide = (name: string): string[] => sides.map((side) => `${side.name}.${name}`);
  const counts = values.map(
    (name) => `${quoteText(name)}: count_if(${ofSide(name).map(quoteName).join(' IS DISTINCT FROM ')})`,
  );
  const found = await duckdb.rows(`WITH difference AS (${differences(names, spec, sides)})
    SELECT ".kind" AS kind, {${['".rows": count(*)', ...counts].join(', ')}} AS counts,
      list_sort(list(DISTINCT ".day")) AS days, first(difference ORDER BY ${spec.sort.map(quoteName).join(', ')}) AS example
    FROM difference GROUP BY ".kind"`);
  return KINDS.flatMap((kind) => {
    const { counts: ofKind, days, example } = found.find((row) => row['kind'] === kind) ?? {};
    if (ofKind === undefined) return [];
    const count = (name: string): number => Number((ofKind as Row)[name]);
    const different = kind === 'rows-differ' ? values.filter((name) => count(name) > 0) : [];
    const where =
      kind === 'rows-differ'
        ? { columns: Object.fromEntries(different.map((name) => [name, count(name)])) }
        : { days: (days as readonly unknown[]).map((day) => dayText(Number(day))) };
    const shown = [...spec.sort, ...different.flatMap(ofSide)];
    const first = Object.fromEntries(shown.map((name) => [name, (example as Row)[name]]));
    return [{ kind, key, rows: count('.rows'), ...where, example: first }];
  });
}

/** A row for each key of which the sides have other rows, with the values of both. */
function differences(
  names: readonly string[],
  spec: DatasetSpec,
  [first, second]: readonly [Side, Side],
): string {
  const { sort } = spec;
  const columns = names.map(quoteName).join(', ');
  const day = dayExpression(spec);
  const only = (one: Side, other: Side): string =>
    `(SELECT *, ${day} AS ".day" FROM (SELECT ${columns} FROM ${one.rows} EXCEPT SELECT ${columns} FROM ${other.all ?? other.rows}))`;
  const isSame = sort.map(quoteName).map((name) => `one.${name} IS NOT DISTINCT FROM other.${name}`);
  const selected = names.map((name) =>
    sort.includes(name)
      ? `coalesce(one.${quoteName(name)}, other.${quoteName(name)}) AS ${quoteName(name)}`
      : `one.${quoteName(name)} AS ${quoteName(`${first.name}.${name}`)}, other.${quoteName(name)} AS ${quoteName(`${second.name}.${name}`)}`,
  );
  return `SELECT ${selected.join(', ')}, coalesce(one.".day", other.".day") AS ".day",
      CASE WHEN one.".day" IS NULL THEN 'rows-missing' WHEN other.".day" IS NULL THEN 'rows-extra' ELSE 'rows-differ' END AS ".kind"
    FROM ${only(first, second)} AS one FULL JOIN ${only(second, first)} AS other ON ${isSame.join(' AND ')}`;
}

// The rows of objects in DuckDB, as an audit compares them.

/** Rows are loaded in their published order, with numbers as doubles. */
export const AUDITED: Settings = {
  format: 'parquet',
  partition: 'month',
  cadence: 'auto',
  numbers: 'double',
  timestamps: 'us',
  asPublished: true,
};

/** About six months of 1m bars. */
const MEMORY_CSV_BYTES = 32 * 1024 * 1024;

export interface AuditedObjects extends Pick<Conversion, 'spec' | 'series' | 'received' | 'failed'> {
  /** For temporary files. */
  readonly folder: string;
}

/**
 * Calls `act` while the relation `rows` holds the rows of the valid objects, each with the ordinal of its object. Resolves with undefined if no
 * object is valid. Rejects with errors that do not concern the content of the objects (disk, memory, interruption, bugs).
 */
export async function withRows<T>(
  duckdb: DuckDb,
  { folder, ...objects }: AuditedObjects,
  act: (read: ReadObjects) => Promise<T>,
  ordinalOf: (object: ArchiveObject) => number = () => 0,
): Promise<T | undefined> {
  const targetPath = join(folder, randomUUID());
  const conversion: Conversion = {
    ...objects,
    duckdb,
    settings: AUDITED,
    csvPath: `${targetPath}.csv`,
    targetPath,
    memoryCsvBytes: MEMORY_CSV_BYTES,
    metadata: () => ({ cryptodl: '{}' }),
  };
  try {
    const read = await readObjects(conversion, (inputs) =>
      inputs.map(({ received }) => ordinalOf(received.object)),
    );
    return read === undefined ? undefined : await act(read);
  } finally {
    await removeScratch(conversion);
  }
}
