/** The footer of a Parquet file (row count, columns, provenance), and the quarantine of a file with objects that only its footer lists. */
import { join } from 'node:path';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteText } from '../convert/sql.js';
import { parquetRowCountQuery } from '../convert/statements.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import { fileSize } from '../lake/publish.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import type { PartitionPlan, Settings } from '../model/task.js';
import type { ExistingFile } from './existing-file.js';
import type { WriterContext } from './writer.js';

export interface Footer {
  readonly rows: number;
  /** Names of the columns with their physical types. */
  readonly columns: ReadonlyMap<string, string>;
  /** The objects of its rows; undefined for a file that cryptodl did not write. */
  readonly provenance?: {
    readonly keys: readonly string[];
    /** Undefined in files of older versions. */
    readonly settings?: Settings;
  };
}

/** Rejects for a file that is not Parquet, or is truncated. */
export async function readFooter(session: DuckDbSession, file: string): Promise<Footer> {
  const [count] = await session.rows(parquetRowCountQuery(file));
  const schema = await session.rows(
    `SELECT name, type FROM parquet_schema(${quoteText(file)}) WHERE type IS NOT NULL`,
  );
  const [metadata] = await session.rows(
    `SELECT decode(value) AS text FROM parquet_kv_metadata(${quoteText(file)}) WHERE decode(key) = 'cryptodl'`,
  );
  return {
    rows: Number(count?.['rows']),
    columns: new Map(schema.map(({ name, type }) => [String(name), String(type)])),
    ...provenanceIn(metadata?.['text']),
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

// Objects of a file that the manifest does not list, when the file is replaced.

/**
 * Moves the existing file to the quarantine if it contains objects that neither the manifest nor the new file has. Resolves
 * with a `dropped` line for each of these objects, so that `repair` fetches them.
 */
export async function adoptUnlistedRows(
  context: WriterContext,
  plan: PartitionPlan,
  existing: ExistingFile,
  { received, files }: { readonly received: readonly ReceivedObject[]; readonly files: readonly string[] },
): Promise<DroppedLine[]> {
  const isDoubtful = existing.inFile.length === 0 || plan.rebuild === 'damaged';
  if (!isDoubtful || !files.includes(existing.file) || (await fileSize(existing.path)) === undefined)
    return [];
  const keys = await provenanceKeys(context, plan, existing);
  const known = new Set(
    [...existing.objects.lines(), ...received.map(({ object }) => object)].map(({ key }) => key),
  );
  const unknown = keys?.filter((key) => !known.has(key));
  // A file without provenance goes to the quarantine only if the manifest does not list it.
  if (unknown === undefined ? existing.inFile.length > 0 : unknown.length === 0) return [];
  const nowMs = context.clock.now();
  const cause = `no manifest line lists ${unknown?.join(', ') ?? 'this file'}`;
  await moveToQuarantine(context.paths, join(existing.folder, existing.file), cause, nowMs);
  const { settings } = plan;
  const at = new Date(nowMs).toISOString();
  return (unknown ?? []).map((key) => ({
    v: 1,
    kind: 'dropped',
    key,
    format: settings.format,
    at,
    settings,
  }));
}

/** Keys of the objects in the file, from its metadata; undefined when it has none. */
async function provenanceKeys(
  { engine }: WriterContext,
  { settings }: PartitionPlan,
  { path }: ExistingFile,
): Promise<readonly string[] | undefined> {
  if (settings.format !== 'parquet') return undefined;
  const session = await engine.session('small');
  try {
    return (await readFooter(session, path)).provenance?.keys;
  } catch {
    return undefined;
  } finally {
    session.close();
  }
}
