/** The footer of a Parquet file: row count, columns and provenance. */
import type { Settings } from '../model/task.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteText } from '../convert/sql.js';
import { parquetRowCount } from '../convert/statements.js';

export interface Footer {
  readonly rows: number;
  /** Names of the columns with their physical types. */
  readonly columns: ReadonlyMap<string, string>;
  /** The objects that its rows come from; undefined for a file that cryptodl did not write. */
  readonly provenance?: {
    readonly keys: readonly string[];
    /** Undefined in files of older versions. */
    readonly settings?: Settings;
  };
}

/** Rejects for a file that is not Parquet, or is truncated. */
export async function readFooter(session: DuckDbSession, file: string): Promise<Footer> {
  const [count] = await session.rows(parquetRowCount(file));
  const schema = await session.rows(
    `SELECT name, type FROM parquet_schema(${quoteText(file)}) WHERE type IS NOT NULL`,
  );
  const [told] = await session.rows(
    `SELECT decode(value) AS text FROM parquet_kv_metadata(${quoteText(file)}) WHERE decode(key) = 'cryptodl'`,
  );
  return {
    rows: Number(count?.['rows']),
    columns: new Map(schema.map(({ name, type }) => [String(name), String(type)])),
    ...provenanceIn(told?.['text']),
  };
}

function provenanceIn(text: unknown): Pick<Footer, 'provenance'> {
  if (typeof text !== 'string') return {};
  try {
    const { objects, settings } = JSON.parse(text) as {
      objects?: readonly { key: string }[];
      settings?: Settings;
    };
    const keys = (objects ?? []).map(({ key }) => key).filter((key) => typeof key === 'string');
    return { provenance: { keys, ...(settings === undefined ? {} : { settings }) } };
  } catch {
    // Another program has written a metadata entry of the same name.
    return {};
  }
}
