/** The footer of a Parquet file (row count, columns, provenance), and the quarantine of a file with rows that the manifest does not list. */
import type { ReceivedObject } from '../convert/csv-input.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quotePath } from '../convert/sql.js';
import { parquetRowCountQuery } from '../convert/statements.js';
import { bringIn } from '../lake/backing.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import { refuseIrregular } from '../lake/path-checks.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import { knownSettings } from '../lake/settings.js';
import type { PartitionPlan, Settings } from '../model/task.js';
import { periodInFile } from '../source/keys.js';
import type { ExistingFile } from './existing-file.js';
import type { WriterContext } from './writer.js';

export interface Footer {
  readonly rows: number;
  /** Names of the columns with their physical types. */
  readonly columns: ReadonlyMap<string, string>;
  /** The objects of its rows; undefined for a file that cryptodl did not write, and for an entry of unusual length. */
  readonly provenance?: {
    readonly keys: readonly string[];
    /** With unchecked fields. */
    readonly objects: readonly Readonly<Record<string, unknown>>[];
    /** Undefined in files of older versions, and if they are invalid. */
    readonly settings?: Settings;
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
  const content = typeof text === 'string' ? parsed(text) : undefined;
  const objects = isRecord(content) ? (content['objects'] ?? []) : undefined;
  // Otherwise another program has written a metadata entry of the same name.
  if (!isRecord(content) || !Array.isArray(objects) || !objects.every(isRecord)) return {};
  const settings = knownSettings(content['settings']);
  const keys = objects.map(({ key }) => key).filter((key) => typeof key === 'string');
  return { provenance: { keys, objects, content, ...(settings === undefined ? {} : { settings }) } };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

// Objects of a file that the manifest does not list, when the file is replaced.

/** A file that replaces or joins the files of the series. */
interface NewFile {
  readonly file: string;
  readonly facts: Pick<FileFacts, 'bytes' | 'sha256'>;
}

export interface Adoption {
  /** A `dropped` line for each object that only the quarantined file has, so that `repair` fetches it. */
  readonly lines: readonly DroppedLine[];
  /** The path of the quarantined file. */
  readonly quarantinePath?: string | undefined;
}

/**
 * Moves the existing file to the quarantine if it may contain objects that neither the manifest nor the new file has. Parquet
 * files name their objects. A CSV file may contain more than the manifest lists if it is larger than at its last commit.
 */
export async function adoptUnlistedRows(
  context: WriterContext,
  plan: PartitionPlan,
  existing: ExistingFile,
  { received, made }: { readonly received: readonly ReceivedObject[]; readonly made: readonly NewFile[] },
): Promise<Adoption> {
  const isDoubtful = existing.inFile.length === 0 || plan.rebuild === 'damaged';
  const replacing = made.find(({ file }) => file === existing.file);
  const size = await fileSize(existing.path);
  if (!isDoubtful || replacing === undefined || size === undefined) return { lines: [] };
  const keys = await provenanceKeys(context, plan, existing);
  const known = new Set(
    [...existing.objects.lines(), ...received.map(({ object }) => object)].map(({ key }) => key),
  );
  const unknown = keys?.filter((key) => !known.has(key));
  const isCovered =
    unknown === undefined ? await isReplaced(existing, size, replacing) : unknown.length === 0;
  if (isCovered) return { lines: [] };
  const nowMs = context.clock.now();
  // A footer may state anything, so only keys of the series and of the period of the file get lines.
  const { venue } = context;
  const { series } = plan;
  const lost = (unknown ?? []).filter(
    (key) => periodInFile({ venue, series }, existing.file, key) !== undefined,
  );
  const cause = `no manifest line lists ${lost.length === 0 ? 'all rows of this file' : lost.join(', ')}`;
  const quarantinePath = await moveToQuarantine(context.paths, existing.path, cause, nowMs);
  const { settings } = plan;
  const at = new Date(nowMs).toISOString();
  const lines = [...new Set(lost)].map((key): DroppedLine => ({
    v: 1,
    kind: 'dropped',
    key,
    format: settings.format,
    at,
    settings,
  }));
  return { lines, quarantinePath };
}

/** Whether a file without provenance has no rows beyond those of the new file, as far as its size or its digest tells. */
async function isReplaced(
  { inFile, objects, file, path }: ExistingFile,
  size: number,
  { facts }: NewFile,
): Promise<boolean> {
  if (size === facts.bytes && (await fileFacts(path)).sha256 === facts.sha256) return true;
  return inFile.length > 0 && size <= (objects.bytesOf(file) ?? 0);
}

/** Keys of the objects in the file, from its metadata; undefined without any. */
async function provenanceKeys(
  { engine }: WriterContext,
  { settings }: PartitionPlan,
  { path }: ExistingFile,
): Promise<readonly string[] | undefined> {
  if (settings.format !== 'parquet') return undefined;
  const session = await engine.session('small');
  try {
    const { keys = [] } = (await readFooter(session, path)).provenance ?? {};
    return keys.length === 0 ? undefined : keys;
  } catch {
    return undefined;
  } finally {
    session.close();
  }
}
