/** Checks one series: each manifest line, each file against its lines, and files that no line names. */
import { join } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { LINE_TOO_LONG } from '../lake/complete-lines.js';
import type { ObjectKeys } from '../lake/check-manifest-line.js';
import { isPartitionFile, firstSymlink, readRegularFile } from '../lake/path-checks.js';
import { keyPath } from '../lake/layout.js';
import { inspectManifest, uninspected } from '../lake/inspect-manifest.js';
import type { InspectedManifest } from '../lake/inspect-manifest.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileSize } from '../lake/publish.js';
import { FORMATS } from '../model/task.js';
import type { Format, Series } from '../model/task.js';
import type { Sidecar, Source } from '../source/source.js';
import { checkFile, UNREADABLE } from './check-file.js';
import type { FileReader } from './check-file.js';
import { asRegular, linkFinding, NOT_PART_OF_LAKE } from './lake-finding.js';
import type { LakeFinding } from './lake-finding.js';
import type { SeriesFolder } from '../lake/walk-lake.js';
import { listEntries } from '../lake/walk-lake.js';

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
  readonly root: string;
  readonly venue: Source;
  readonly reader: FileReader;
  /** Undefined: every format. */
  readonly format: Format | undefined;
}

const NOT_IN_MANIFEST = 'no manifest line names this file';

/** Reads the manifest and checks each file. An unreadable file is a finding; other disk errors reject. */
export async function checkSeries(context: CheckContext, folder: SeriesFolder): Promise<SeriesCheck> {
  const relativePath = folder.path.slice(context.root.length + 1).replaceAll('\\', '/');
  const broken: ObjectLine[] = [];
  let files = 0;
  let bytes = 0;
  const manifestPath = folder.manifest?.path ?? relativePath;
  if (folder.manifest?.isLink === true) {
    const findings = [linkFinding(manifestPath, folder.series)];
    return { folder, relativePath, inspected: uninspected(), findings, files, bytes, broken };
  }
  const inspected = await readManifest(folder.path, context.venue.archive);
  if (typeof inspected === 'string') {
    const findings: LakeFinding[] = [
      { kind: 'unreadable', path: manifestPath, text: inspected, series: folder.series },
    ];
    return { folder, relativePath, inspected: uninspected(), findings, files, bytes, broken };
  }
  const findings: LakeFinding[] = lineFindings(folder.series, manifestPath, inspected);
  // Lines of a later version may describe these files in a way that this version cannot check.
  if (inspected.newer.length > 0) return { folder, relativePath, inspected, findings, files, bytes, broken };
  const linked = linkedZipFolders(context, folder.series, inspected);
  findings.push(...linked.map((path) => linkFinding(path, folder.series)));
  for (const format of FORMATS) {
    if (context.format !== undefined && format !== context.format) continue;
    const held = inspected.manifest[format];
    if (format === 'zip' && linked.length > 0) continue;
    for (const [file, lines] of linesByFile(held)) {
      files += 1;
      bytes += held.bytesOf(file) ?? 0;
      const path = format === 'zip' ? file : `${relativePath}/${file}`;
      const wrong = await checkFile(context.reader, folder.series, {
        path: join(context.root, path),
        format,
        lines,
        held,
      });
      if (wrong === undefined) continue;
      broken.push(...lines);
      const periods = lines.map((line) => line.period);
      findings.push({ ...wrong, path, series: folder.series, format, periods });
    }
  }
  const zips = linked.length > 0 ? [] : await zipFindings(context, folder.series, inspected);
  const others = [...fileFindings(context, folder, relativePath, inspected), ...zips];
  findings.push(...(await Promise.all(others.map((finding) => asRegular(context.root, finding)))));
  return { folder, relativePath, inspected, findings, files, bytes, broken };
}

/** The path of the file of a manifest line, relative to the root of the lake. */
export function pathInLake({ relativePath }: Pick<SeriesCheck, 'relativePath'>, line: ObjectLine): string {
  return line.settings.format === 'zip' ? line.file : `${relativePath}/${line.file}`;
}

/** The manifest, or the reason why it cannot be read. */
async function readManifest(folder: string, archive: ObjectKeys): Promise<InspectedManifest | string> {
  try {
    return await inspectManifest(folder, archive);
  } catch (error) {
    if (error instanceof CryptodlError)
      return error.code === 'manifest-damaged'
        ? `the manifest ${LINE_TOO_LONG}`
        : 'the manifest is not a regular file';
    const errno = errnoOf(error);
    if (!UNREADABLE.has(errno)) throw error;
    return `the manifest cannot be read (${errno})`;
  }
}

function linesByFile(held: HeldObjects): Map<string, ObjectLine[]> {
  const files = new Map<string, ObjectLine[]>();
  for (const line of held.lines()) {
    const lines = files.get(line.file);
    if (lines === undefined) files.set(line.file, [line]);
    else lines.push(line);
  }
  return files;
}

function lineFindings(series: Series, path: string, { damaged, newer }: InspectedManifest): LakeFinding[] {
  return [
    ...damaged.map(({ number, why }): LakeFinding => ({
      kind: 'line-damaged',
      path,
      line: number,
      text: why,
      series,
    })),
    ...newer.map((number): LakeFinding => ({
      kind: 'line-newer',
      path,
      line: number,
      text: 'a later version of cryptodl wrote this line',
      series,
    })),
  ];
}

function fileFindings(
  context: CheckContext,
  { series, files, nestedFiles, links }: SeriesFolder,
  relativePath: string,
  { manifest }: InspectedManifest,
): LakeFinding[] {
  const named = new Set(FORMATS.flatMap((format) => manifest[format].lines().map(({ file }) => file)));
  const ours = files.filter((name) => isPartitionFile(name) && !named.has(name));
  // A link in place of a committed file is reported as a missing file.
  const strange = links.filter((name) => !named.has(name));
  const findings = strange.map((name) => linkFinding(`${relativePath}/${name}`, series));
  for (const name of ours) {
    const format = name.endsWith('.csv') ? 'csv' : 'parquet';
    if (context.format !== undefined && format !== context.format) continue;
    findings.push({
      kind: 'unlisted',
      path: `${relativePath}/${name}`,
      text: NOT_IN_MANIFEST,
      series,
      format,
    });
  }
  for (const name of [...files.filter((each) => !isPartitionFile(each)), ...nestedFiles])
    findings.push({ kind: 'stranger', path: `${relativePath}/${name}`, text: NOT_PART_OF_LAKE, series });
  return findings;
}

function zipFolders(venue: Source, series: Series): string[] {
  const folders = (['daily', 'monthly'] as const).map((cadence) =>
    keyPath(venue.archive.seriesPrefix(series, cadence).slice(0, -1)),
  );
  // An archive may have one folder for both cadences.
  return [...new Set(folders)];
}

/** Symbolic links on the paths to the zip folders of the series. */
function linkedZipFolders(
  { root, venue }: CheckContext,
  series: Series,
  { exists, manifest: { zip } }: InspectedManifest,
): string[] {
  if (exists && zip.size === 0) return [];
  const links = zipFolders(venue, series).map((relativePath) => firstSymlink(root, relativePath));
  return [...new Set(links)].flatMap((link) => link ?? []);
}

/**
 * Checks the folders of the archive layout only if the manifest names zips or does not exist. Otherwise a user may have made
 * such a folder, and its files do not belong to the lake.
 */
async function zipFindings(
  { root, venue, format }: CheckContext,
  series: Series,
  { exists, manifest: { zip } }: InspectedManifest,
): Promise<LakeFinding[]> {
  if ((exists && zip.size === 0) || (format !== undefined && format !== 'zip')) return [];
  const { sidecar } = venue.archive;
  const suffix = sidecar?.suffix ?? '';
  const named = new Set(zip.lines().flatMap(({ file }) => [file, file + suffix]));
  const findings = sidecar === undefined ? [] : await sidecarFindings(root, series, zip, sidecar);
  for (const relativePath of zipFolders(venue, series)) {
    const { files, links } = await listEntries(join(root, relativePath));
    const strange = links.map((name) => `${relativePath}/${name}`).filter((path) => !named.has(path));
    findings.push(...strange.map((path) => linkFinding(path, series)));
    for (const name of files) {
      const path = `${relativePath}/${name}`;
      if (named.has(path)) continue;
      const isOurs = name.endsWith(venue.archive.ending) || (suffix !== '' && name.endsWith(suffix));
      findings.push({
        kind: isOurs ? 'unlisted' : 'stranger',
        path,
        text: isOurs ? NOT_IN_MANIFEST : NOT_PART_OF_LAKE,
        series,
        ...(isOurs ? { format: 'zip' as const } : {}),
      });
    }
  }
  return findings;
}

/** Checks the sidecar beside each zip that was verified with one. */
async function sidecarFindings(
  root: string,
  series: Series,
  zip: HeldObjects,
  sidecar: Sidecar,
): Promise<LakeFinding[]> {
  const findings: LakeFinding[] = [];
  for (const { file, key, sha256, verified, period } of zip.lines()) {
    if (verified !== 'sidecar') continue;
    const path = file + sidecar.suffix;
    const isThere = (await fileSize(join(root, path))) !== undefined;
    const text = isThere ? await readRegularFile(join(root, path)) : undefined;
    if (text === sidecar.textOf(key, sha256)) continue;
    const wrong =
      text === undefined ? 'the sidecar does not exist' : 'the sidecar does not name the digest of its zip';
    findings.push({ kind: 'sidecar', path, text: wrong, series, format: 'zip', periods: [period] });
  }
  return findings;
}
