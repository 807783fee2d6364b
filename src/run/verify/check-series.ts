/** Checks one series: each manifest line, each file against its lines, and files that no line names. */
import { join, basename, dirname } from 'node:path';
import type { Engine } from '../../convert/duckdb.js';
import type { Session } from '../session/session.js';
import { CryptodlError, errnoOf } from '../../model/errors.js';
import type { ObjectKeys } from '../../lake/object-keys.js';
import { InspectedManifest, inspectManifest } from '../../lake/manifest.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { FORMATS, type Format, type Series } from '../../model/task.js';
import { asRegular, linkFinding, NOT_REGULAR, NOT_IN_MANIFEST, type LakeFinding } from './lake-finding.js';
import { listEntries, type ListedSeries, type SeriesFolder } from '../../lake/walk-lake.js';
import { inspectRows } from '../../convert/inspect-rows.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { entryAt, firstSymlink, isIrregular, isPartitionFile } from '../../files/path-checks.js';
import { fileFacts, fileSize, type FileFacts } from '../../files/file-facts.js';
import type { Exchange } from '../../exchange/exchange.js';
import { safeKeyPath } from '../../lake/safe-names.js';

export interface SeriesCheck {
  readonly folder: SeriesFolder;
  /** The folder relative to the lake's root. */
  readonly relativePath: string;
  readonly inspected: InspectedManifest;
  readonly findings: readonly LakeFinding[];
  /** Number of checked files, and their bytes as committed. */
  readonly files: number;
  readonly bytes: number;
  /** Manifest lines of the objects in missing or damaged files. */
  readonly broken: readonly ObjectLine[];
}

export interface CheckContext {
  readonly session: Session;
  /** Whether to change the lake, which needs the lock. */
  readonly fix: boolean;
  /** For the rows of files; undefined if they are not read. */
  readonly engine: Engine | undefined;
  /** Undefined: every format. */
  readonly format: Format | undefined;
}

/** Reads the manifest and checks each file. An unreadable file is a finding; other disk errors reject. */
export async function checkSeries(context: CheckContext, folder: ListedSeries): Promise<SeriesCheck> {
  const { paths, exchange } = context.session;
  const { root } = paths;
  const { format: checkedFormat } = context;
  const part = { root, exchange, format: checkedFormat };
  const relativePath = folder.path.slice(root.length + 1).replaceAll('\\', '/');
  const manifestPath = folder.manifest?.path ?? relativePath;
  const inspected =
    folder.manifest?.isLink === true
      ? linkFinding(manifestPath, folder.series)
      : await readManifest(folder, manifestPath, exchange.archive);
  const broken: ObjectLine[] = [];
  const found = { folder, relativePath, files: 0, bytes: 0, broken };
  if ('kind' in inspected) return { ...found, inspected: new InspectedManifest(), findings: [inspected] };
  const findings: LakeFinding[] = lineFindings(folder.series, manifestPath, inspected);
  // Lines of a later version may describe these files in a way that this version cannot check.
  if (inspected.newer.length > 0) return { ...found, inspected, findings };
  const linked = linkedZipFolders(part, folder.series, inspected);
  findings.push(...linked.map((path) => linkFinding(path, folder.series)));
  for (const format of FORMATS) {
    if (checkedFormat !== undefined && format !== checkedFormat) continue;
    const held = inspected.manifest[format];
    if (format === 'zip' && linked.length > 0) continue;
    for (const [file, lines] of held.linesByFile()) {
      const committed = held.lastOfFile(file) ?? lines[0];
      found.files += 1;
      found.bytes += committed.fileBytes;
      const path = format === 'zip' ? file : `${relativePath}/${file}`;
      const { series } = folder;
      const wrong = await checkFile(context, series, join(root, path), { lines, committed });
      if (wrong === undefined) continue;
      broken.push(...lines);
      const periods = lines.map((line) => line.period);
      findings.push({ ...wrong, path, series, format, periods });
    }
  }
  const zips = linked.length > 0 ? [] : unlistedZips(part, folder.series, inspected);
  const others = [...unlistedFiles(part, folder, relativePath, inspected), ...zips];
  findings.push(...(await Promise.all(others.map((finding) => asRegular(root, finding)))));
  return { ...found, inspected, findings };
}

/** The path of the file of a manifest line, relative to the root of the lake. */
export function pathInLake({ relativePath }: Pick<SeriesCheck, 'relativePath'>, line: ObjectLine): string {
  return line.settings.format === 'zip' ? line.file : `${relativePath}/${line.file}`;
}

/** The manifest, or the finding about one that cannot be read. */
async function readManifest(
  { path, series }: SeriesFolder,
  manifestPath: string,
  archive: ObjectKeys,
): Promise<InspectedManifest | LakeFinding> {
  try {
    return await inspectManifest(path, archive);
  } catch (error) {
    if (!(error instanceof CryptodlError) && !UNREADABLE.has(errnoOf(error))) throw error;
    const text = `the manifest cannot be read: ${(error as Error).message}`;
    return { kind: 'unreadable', path: manifestPath, text, series };
  }
}

function lineFindings(series: Series, path: string, { damaged, newer }: InspectedManifest): LakeFinding[] {
  const text = 'a later version of cryptodl wrote this line';
  return [
    ...damaged.map(({ number, why }) => ({ kind: 'line-damaged', line: number, text: why }) as const),
    ...newer.map((line) => ({ kind: 'line-newer', line, text }) as const),
  ].map(({ kind, ...of }) => ({ kind, path, ...of, series }));
}

/** Errno values with which the file system refuses to read a file. */
const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO']);

type FileCheck = Pick<LakeFinding, 'kind' | 'text'>;

/**
 * Compares a file with its last commit: size, digest, and the row counts of its manifest lines; with an engine also the rows. Of a zip,
 * only size and digest. `lines` are the manifest lines of the objects in the file. Resolves with undefined when nothing differs.
 */
async function checkFile(
  { engine, session: { exchange } }: CheckContext,
  series: Series,
  path: string,
  { lines, committed }: { readonly lines: readonly ObjectLine[]; readonly committed: ObjectLine },
): Promise<FileCheck | undefined> {
  try {
    const size = await fileSize(path);
    if (size === undefined) return await missing(path);
    const text = differenceOf(await fileFacts(path), committed, lines);
    if (text !== undefined) return { kind: 'damaged', text };
    const { settings } = committed;
    const spec = findDataset(exchange, series.market, series.dataset);
    if (engine === undefined || spec === undefined || settings.format === 'zip') return undefined;
    const rows = await engine.connect();
    try {
      const { interval } = series;
      const wrong = await inspectRows(rows, { path, spec, settings, interval, lines });
      return wrong.length === 0 ? undefined : { kind: 'damaged', text: wrong.join('; ') };
    } finally {
      rows.close();
    }
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return { kind: 'missing', text: 'the file does not exist' };
    if (!UNREADABLE.has(errno)) throw error;
    return { kind: 'unreadable', text: `the file cannot be read (${errno})` };
  }
}

async function missing(path: string): Promise<FileCheck> {
  const text = 'a symbolic link stands in place of the file; links are not followed';
  if (firstSymlink(dirname(path), basename(path)) !== undefined) return { kind: 'missing', text };
  // Only the user can move it away: repair writes no file in its place.
  if (isIrregular(await entryAt(path))) return { kind: 'unreadable', text: `${NOT_REGULAR}: move it away` };
  return { kind: 'missing', text: 'the file does not exist' };
}

function differenceOf(
  facts: FileFacts,
  committed: ObjectLine,
  lines: readonly ObjectLine[],
): string | undefined {
  if (facts.bytes !== committed.fileBytes)
    return `the file has ${facts.bytes} bytes, the committed file had ${committed.fileBytes}`;
  if (facts.sha256 !== committed.fileSha256)
    return `the SHA-256 of the file is ${facts.sha256.slice(0, 12)}…, that of the committed file was ${committed.fileSha256.slice(0, 12)}…`;
  const { fileRows } = committed;
  const rows = lines.reduce((total, line) => total + (line.rows ?? 0), 0);
  return fileRows === undefined || rows === fileRows
    ? undefined
    : `the file has ${fileRows} rows, its manifest lines name ${rows}: a manifest line is missing`;
}

// Finds the files and links of a series that no line of its manifest names.

interface CheckedPart {
  /** The lake. */
  readonly root: string;
  readonly exchange: Exchange;
  /** Undefined: every format. */
  readonly format: Format | undefined;
}

function unlistedFiles(
  checked: CheckedPart,
  { series, files, nestedFiles, links }: ListedSeries,
  relativePath: string,
  { manifest }: InspectedManifest,
): LakeFinding[] {
  const named = new Set(FORMATS.flatMap((format) => manifest[format].lines().map(({ file }) => file)));
  const isOther = (name: string): boolean =>
    checked.format !== undefined && isPartitionFile(name) && !name.endsWith(checked.format);
  const others = [...files, ...nestedFiles].filter((name) => !isOther(name));
  return strangeFindings(series, relativePath, { files: others, links }, (name) => named.has(name));
}

/** The files and links of a folder that no line names. A link in place of a committed file is reported as a missing file. */
function strangeFindings(
  series: Series,
  folder: string,
  { files, links }: Pick<ListedSeries, 'files' | 'links'>,
  isNamed: (name: string) => boolean,
): LakeFinding[] {
  const pathsOf = (names: readonly string[]): string[] =>
    names.filter((name) => !isNamed(name)).map((name) => `${folder}/${name}`);
  return [
    ...pathsOf(links).map((path) => linkFinding(path, series)),
    ...pathsOf(files).map((path): LakeFinding => ({ kind: 'unlisted', path, text: NOT_IN_MANIFEST, series })),
  ];
}

function zipFolders(exchange: Exchange, series: Series): string[] {
  const folders = (['daily', 'monthly'] as const).map((cadence) =>
    safeKeyPath(exchange.archive.seriesPrefix(series, cadence).slice(0, -1)),
  );
  // An archive may have one folder for both cadences.
  return [...new Set(folders)];
}

/** The links in place of the folders of the zips of a series. */
function linkedZipFolders(
  { root, exchange }: CheckedPart,
  series: Series,
  { exists, manifest: { zip } }: InspectedManifest,
): string[] {
  if (exists && zip.size === 0) return [];
  const links = zipFolders(exchange, series).map((relativePath) => firstSymlink(root, relativePath));
  return [...new Set(links)].flatMap((link) => link ?? []);
}

/**
 * Checks the folders of the archive layout only if the manifest names zips or does not exist. Otherwise a user may have made
 * such a folder, and its files do not belong to the lake.
 */
function unlistedZips(
  { root, exchange, format }: CheckedPart,
  series: Series,
  { exists, manifest: { zip } }: InspectedManifest,
): LakeFinding[] {
  if ((exists && zip.size === 0) || (format !== undefined && format !== 'zip')) return [];
  const suffix = exchange.archive.sidecar?.suffix ?? '';
  const named = new Set(zip.lines().flatMap(({ file }) => [file, file + suffix]));
  return zipFolders(exchange, series).flatMap((folder) =>
    strangeFindings(series, folder, listEntries(join(root, folder)), (name) =>
      named.has(`${folder}/${name}`),
    ),
  );
}
