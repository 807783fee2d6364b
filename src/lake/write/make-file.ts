/** Converts the received objects of one file, together with the rows that stay in it, to a staged file with its metadata, and reads it back. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MEMORY_CSV_BYTES } from '../../convert/conversion.js';
import type { Conversion, ConversionResult, FileMetadata } from '../../convert/conversion.js';
import { convert } from '../../convert/convert.js';
import { keptIsLarge } from '../../convert/write-target.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { DuckDb } from '../../convert/duckdb.js';
import { isLarge } from '../../convert/read-objects.js';
import { readFooter } from '../../convert/parquet-footer.js';
import { bringIn } from '../../files/backing.js';
import { fileFacts, type FileFacts } from '../../files/file-facts.js';
import { periodText } from '../../model/calendar.js';
import { CryptodlError } from '../../model/errors.js';
import type { PartitionPlan, Series, Settings } from '../../model/task.js';
import { stagingFolder } from '../layout.js';
import { describeColumns } from '../../exchange/describe.js';
import { findDataset, type DatasetSpec, type ExchangeSpec } from '../../exchange/exchange-spec.js';
import type { MadeFile } from './commit.js';
import { overlaps, type ExistingFile } from './existing-file.js';
import type { WriterContext } from './writer.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';

/** The files of a partition: one, or with `split` one for each object. */
export function splitIntoParts(plan: PartitionPlan, received: readonly ReceivedObject[]) {
  if (plan.split !== true) return [{ label: plan.label, received }];
  return received.map((object) => ({ label: periodText(object.object.period), received: [object] }));
}

/**
 * Resolves with the staged file; without valid rows there is none and `result.rows` is 0. Rejects with `partition-incomplete` or
 * `out-of-memory`, and on disk errors and bugs.
 */
export async function makeFile(
  duckdb: DuckDb,
  context: WriterContext,
  plan: PartitionPlan,
  part: FilePart,
): Promise<MadeFile> {
  const name = randomUUID();
  const staged = join(await stagingFolder(context.paths), `${name}.partial`);
  const csvPath = join(context.tempFolder, `${name}.csv`);
  try {
    const subject = { plan, label: part.label };
    const result = await context.timed('convert', subject, () =>
      convertPart(duckdb, context, plan, { ...part, staged, csvPath }),
    );
    const empty = { bytes: 0, sha256: '', newlines: 0 };
    const facts =
      result.rows === 0 ? empty : await context.timed('check', subject, () => readBack(plan, staged, result));
    return { staged, file: `${part.label}.${plan.settings.format}`, facts, result };
  } catch (error) {
    await rm(staged, { force: true });
    throw error;
  }
}

export function datasetSpec(context: WriterContext, plan: PartitionPlan): DatasetSpec {
  const spec = findDataset(context.exchange, plan.series.market, plan.series.dataset);
  if (spec === undefined) throw new CryptodlError('bug', `${plan.series.dataset} is not declared`);
  return spec;
}

/** `large` if rows are parsed into a file or sorted on disk. */
export function connectionSize(
  received: readonly ReceivedObject[],
  { kept }: ExistingFile,
): 'small' | 'large' {
  return isLarge({ memoryCsvBytes: MEMORY_CSV_BYTES }, received) || keptIsLarge(kept) ? 'large' : 'small';
}

interface FilePart {
  readonly label: string;
  readonly received: readonly ReceivedObject[];
  readonly existing: ExistingFile;
}

async function convertPart(
  duckdb: DuckDb,
  context: WriterContext,
  plan: PartitionPlan,
  { received, existing, label, staged, csvPath }: FilePart & Readonly<Record<'staged' | 'csvPath', string>>,
): Promise<ConversionResult> {
  const { settings, series } = plan;
  const spec = datasetSpec(context, plan);
  if (existing.kept.length + existing.replaced.length > 0) await bringIn(existing.path);
  return convert({
    duckdb,
    spec,
    settings,
    series,
    received,
    ...rowsToRead(existing, received, context),
    csvPath,
    targetPath: staged,
    memoryCsvBytes: MEMORY_CSV_BYTES,
    failed: new Map(),
    metadata: (written) =>
      metadataOfObjects({ ...context, series, spec, settings, label }, existing.kept, written),
  });
}

/** Reads the staged file and compares its row count. Rejects with `disk` on a difference. */
async function readBack(plan: PartitionPlan, staged: string, result: ConversionResult): Promise<FileFacts> {
  const facts = await fileFacts(staged);
  const isCsv = plan.settings.format === 'csv';
  const rows = isCsv ? facts.newlines - 1 : (await readFooter(staged)).rows;
  if (rows === result.rows) return facts;
  throw new CryptodlError('disk', `${staged} has ${rows} rows when read back, ${result.rows} were written`, {
    hint: 'run it again; if this error comes back, check the disk and the memory of the machine',
  });
}

/** Empty if no row of the file stays or is compared with received ones. */
function rowsToRead(
  { kept, replaced, path }: ExistingFile,
  received: readonly ReceivedObject[],
  { acceptsShorter }: WriterContext,
): Pick<Conversion, 'existing'> {
  const compared = comparableLines(replaced, received);
  const isRevised = (line: ObjectLine): boolean =>
    !isFromRest(line) &&
    received.some(({ object, sha256 }) => object.key === line.key && sha256 !== line.sha256);
  const revised = acceptsShorter ? [] : replaced.filter(isRevised);
  const hasMonth = received.some(
    ({ object: { period }, verified }) => period.cadence === 'monthly' && verified !== 'rest',
  );
  const days = hasMonth ? replaced.filter(({ cadence }) => cadence === 'daily') : [];
  const isRead = [kept, compared, revised, days].some((lines) => lines.length > 0);
  return isRead ? { existing: { file: path, kept, replaced, compared, revised, days } } : {};
}

/** Replaced lines whose period was received from the other source (archive or REST). All returned lines have one source. */
function comparableLines(
  replaced: readonly ObjectLine[],
  received: readonly ReceivedObject[],
): readonly ObjectLine[] {
  const crossing = replaced.filter((line) =>
    received.some(
      ({ object, verified }) => (verified === 'rest') !== isFromRest(line) && overlaps(line, object.period),
    ),
  );
  const fromRest = crossing.filter(isFromRest);
  return fromRest.length > 0 ? fromRest : crossing;
}

interface DescribedFile {
  readonly exchange: Pick<ExchangeSpec, 'name' | 'terms'>;
  /** The version of the program. */
  readonly tool: string;
  readonly series: Series;
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  /** `2024-01` */
  readonly label: string;
}

/** Where the rows of a file come from. */
interface RowOrigin {
  readonly entry: Readonly<Record<string, unknown>>;
  readonly hasArchive: boolean;
  readonly hasRest: boolean;
}

/**
 * The metadata in the footer of a Parquet file: the series, the columns and the origin of the rows as JSON, with the terms of their sources. It has no
 * time stamps, so that the same rows produce the same file. `venue` is the exchange: files have this name.
 */
export function fileMetadata(
  { exchange, tool, series, spec, settings, label }: DescribedFile,
  { entry, hasArchive, hasRest }: RowOrigin,
): FileMetadata {
  const cryptodl = JSON.stringify({
    tool: `cryptodl ${tool}`,
    venue: exchange.name,
    ...series,
    settings,
    period: label,
    timeZone: 'UTC',
    columns: Object.fromEntries(
      describeColumns(spec).map(({ name, unit, doc }) => [name, unit === '' ? doc : `${doc}; ${unit}`]),
    ),
    ...entry,
  });
  const { terms } = exchange;
  if (terms === undefined) return { cryptodl };
  const sources = [...(hasArchive ? [terms.archive] : []), ...(hasRest ? [terms.rest] : [])];
  return {
    cryptodl,
    license: sources.map(({ license }) => license).join('; '),
    attribution: sources.map(({ attribution }) => attribution).join('; '),
  };
}

/** The metadata of a file with the rows of held lines and of received objects. */
function metadataOfObjects(
  file: DescribedFile,
  kept: readonly ObjectLine[],
  written: readonly ReceivedObject[],
): FileMetadata {
  const received = written.map(({ object: { key }, ...facts }) => ({ ...facts, key }));
  // The facts that the manifest lines have too.
  const objects = [...kept, ...received].map(({ key, sha256, bytes, verified, etag, lastModified }) => {
    return { key, sha256, bytes, verified, etag, lastModified };
  });
  const isRest = objects.map(isFromRest);
  return fileMetadata(file, {
    entry: { objects: objects.sort((a, b) => (a.key < b.key ? -1 : 1)) },
    hasArchive: isRest.includes(false),
    hasRest: isRest.includes(true),
  });
}
