/** The footer of a Parquet file: row count, columns, provenance. */
import type { DuckDbSession } from '../convert/duckdb.js';
import { quotePath } from '../convert/sql.js';
import { parquetRowCountQuery } from '../convert/statements.js';
import { bringIn } from '../lake/backing.js';
import { refuseIrregular } from '../lake/path-checks.js';
import { isRecord, parseJson } from '../text/json.js';

export interface Footer {
  readonly rows: number;
  /** Names of the columns with their physical types. */
  readonly columns: ReadonlyMap<string, string>;
  /** The objects of its rows; undefined for a file that cryptodl did not write, and for an entry of unusual length. */
  readonly provenance?: {
    /** Undefined for a value that is no text. */
    readonly objects: readonly { readonly key: string | undefined; readonly sha256: string | undefined }[];
    /** The whole entry, unchecked. */
    readonly content: Readonly<Record<string, unknown>>;
  };
}

/** In bytes. The entry of a month of daily objects has about 14,000. A longer entry is not parsed. */
const LONGEST_ENTRY = 262_144;

/** Rejects for a file that is not Parquet, or is truncated. */
export async function readFooter(session: DuckDbSession, file: string): Promise<Footer> {
  // Opening a pipe waits for its other end, and no signal ends the wait of DuckDB.
  await refuseIrregular(file);
  await bringIn(file);
  const [count] = await session.rows(parquetRowCountQuery(file));
  const schema = await session.rows(
    `SELECT name, type FROM parquet_schema(${quotePath(file)}) WHERE type IS NOT NULL`,
  );
  const [metadata] = await session.rows(
    `SELECT decode(value) AS text FROM parquet_kv_metadata(${quotePath(file)})
     WHERE decode(key) = 'cryptodl' AND octet_length(value) <= ${LONGEST_ENTRY}`,
  );
  return {
    rows: Number(count?.['rows']),
    columns: new Map(schema.map(({ name, type }) => [String(name), String(type)])),
    ...provenanceIn(metadata?.['text']),
  };
}

function provenanceIn(text: unknown): Pick<Footer, 'provenance'> {
  const content = typeof text === 'string' ? parseJson(text) : undefined;
  const objects = isRecord(content) ? (content['objects'] ?? []) : undefined;
  // Otherwise another program has written a metadata entry of the same name.
  if (!isRecord(content) || !Array.isArray(objects) || !objects.every(isRecord)) return {};
  return {
    provenance: {
      objects: objects.map(({ key, sha256 }) => ({ key: textOf(key), sha256: textOf(sha256) })),
      content,
    },
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
