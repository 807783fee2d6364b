/** One series: its manifest line by line, its files against what the lines say, and files that no line names. */
import { join } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { isPartition, linkOnTheWay, readInside } from '../lake/inside.js';
import { keyFile, MANIFEST } from '../lake/layout.js';
import { inspectManifest, uninspected } from '../lake/inspect-manifest.js';
import type { InspectedManifest } from '../lake/inspect-manifest.js';
import type { Held } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileSize } from '../lake/publish.js';
import type { Format, Series } from '../model/task.js';
import { SIDECAR, seriesPrefix, sidecarText } from '../source/keys.js';
import type { Venue } from '../source/venue.js';
import { checkFile, UNREADABLE } from './check-file.js';
import type { FileReader } from './check-file.js';
import { linkFinding } from './finding.js';
import type { Finding } from './finding.js';
import type { SeriesFolder } from '../lake/walk-lake.js';
import { entriesOf } from '../lake/walk-lake.js';

export interface SeriesCheck {
  readonly folder: SeriesFolder;
  /** The folder relative to the lake's root. */
  readonly place: string;
  readonly inspected: InspectedManifest;
  readonly findings: readonly Finding[];
  /** Files that were looked at, and their bytes as committed. */
  readonly files: number;
  readonly bytes: number;
  /** Objects in files that are not there or not right. */
  readonly broken: readonly ObjectLine[];
}

export interface CheckContext {
  readonly root: string;
  readonly venue: Venue;
  readonly reader: FileReader;
  /** Undefined: all of them. */
  readonly format: Format | undefined;
}

export const FORMATS = ['parquet', 'csv', 'zip'] as const;

export async function checkSeries(context: CheckContext, folder: SeriesFolder): Promise<SeriesCheck> {
  const place = folder.path.slice(context.root.length + 1).replaceAll('\\', '/');
  const broken: ObjectLine[] = [];
  let files = 0;
  let bytes = 0;
  if (folder.links.includes(MANIFEST)) {
    const findings = [linkFinding(`${place}/${MANIFEST}`, folder.series)];
    return { folder, place, inspected: uninspected(), findings, files, bytes, broken };
  }
  const inspected = await inspectedOr(folder.path);
  if (typeof inspected === 'string') {
    const path = `${place}/${MANIFEST}`;
    const findings: Finding[] = [{ kind: 'unreadable', path, text: inspected, series: folder.series }];
    return { folder, place, inspected: uninspected(), findings, files, bytes, broken };
  }
  const findings: Finding[] = lineFindings(folder.series, place, inspected);
  // What a later version says of its files is not known here: they are neither right nor wrong.
  if (inspected.newer.length > 0) return { folder, place, inspected, findings, files, bytes, broken };
  const linked = await linkedZipFolders(context, folder.series, inspected);
  findings.push(...linked.map((path) => linkFinding(path, folder.series)));
  for (const format of FORMATS) {
    if (context.format !== undefined && format !== context.format) continue;
    const held = inspected.manifest[format];
    if (format === 'zip' && linked.length > 0) continue;
    for (const [file, lines] of linesByFile(held)) {
      files += 1;
      bytes += held.lastOfFile(file)?.fileBytes ?? 0;
      const path = format === 'zip' ? file : `${place}/${file}`;
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
  findings.push(...fileFindings(context, folder, place, inspected), ...zips);
  if (!inspected.exists && findings.some(({ kind }) => kind === 'unlisted'))
    findings.push({
      kind: 'no-manifest',
      path: place,
      text: `there are files of it and no ${MANIFEST}`,
      series: folder.series,
    });
  return { folder, place, inspected, findings, files, bytes, broken };
}

/** Why a manifest cannot be read, when it cannot. */
async function inspectedOr(folder: string): Promise<InspectedManifest | string> {
  try {
    return await inspectManifest(folder);
  } catch (error) {
    if (error instanceof CryptodlError) return 'it is no regular file';
    const errno = errnoOf(error);
    if (!UNREADABLE.has(errno)) throw error;
    return `it cannot be read (${errno})`;
  }
}

/** Of what is held, by file. */
function linesByFile(held: Held): Map<string, ObjectLine[]> {
  const files = new Map<string, ObjectLine[]>();
  for (const line of held.lines()) {
    const lines = files.get(line.file);
    if (lines === undefined) files.set(line.file, [line]);
    else lines.push(line);
  }
  return files;
}

function lineFindings(series: Series, place: string, { damaged, newer }: InspectedManifest): Finding[] {
  const path = `${place}/${MANIFEST}`;
  return [
    ...damaged.map(({ number, why }): Finding => ({
      kind: 'line-damaged',
      path,
      line: number,
      text: why,
      series,
    })),
    ...newer.map((number): Finding => ({
      kind: 'line-newer',
      path,
      line: number,
      text: 'a later cryptodl wrote it',
      series,
    })),
  ];
}

function fileFindings(
  context: CheckContext,
  { series, files, deeper, links }: SeriesFolder,
  place: string,
  { manifest }: InspectedManifest,
): Finding[] {
  const named = new Set(FORMATS.flatMap((format) => manifest[format].lines().map(({ file }) => file)));
  const ours = files.filter((name) => isPartition(name) && !named.has(name));
  // In place of a committed file it is a missing file.
  const strange = links.filter((name) => !named.has(name));
  const findings = strange.map((name) => linkFinding(`${place}/${name}`, series));
  for (const name of ours) {
    const format = name.endsWith('.csv') ? 'csv' : 'parquet';
    if (context.format !== undefined && format !== context.format) continue;
    findings.push({
      kind: 'unlisted',
      path: `${place}/${name}`,
      text: 'no manifest line names this file',
      series,
      format,
    });
  }
  const strangers = [...files.filter((name) => !isPartition(name) && name !== MANIFEST), ...deeper];
  for (const name of strangers)
    findings.push({ kind: 'stranger', path: `${place}/${name}`, text: 'it is nothing of a lake', series });
  return findings;
}

function zipFolders(venue: Venue, series: Series): string[] {
  return (['daily', 'monthly'] as const).map((cadence) =>
    keyFile(seriesPrefix(venue, series, cadence).slice(0, -1)),
  );
}

/** Links in the way of its zips. */
async function linkedZipFolders(
  { root, venue }: CheckContext,
  series: Series,
  { exists, manifest: { zip } }: InspectedManifest,
): Promise<string[]> {
  if (exists && zip.size === 0) return [];
  const links = await Promise.all(zipFolders(venue, series).map((place) => linkOnTheWay(root, place)));
  return [...new Set(links)].flatMap((link) => link ?? []);
}

/** Only where the series has zips, or nobody can tell: elsewhere a folder of the archive's keys is somebody's own. */
async function zipFindings(
  { root, venue, format }: CheckContext,
  series: Series,
  { exists, manifest: { zip } }: InspectedManifest,
): Promise<Finding[]> {
  if ((exists && zip.size === 0) || (format !== undefined && format !== 'zip')) return [];
  const named = new Set(zip.lines().flatMap(({ file }) => [file, `${file}${SIDECAR}`]));
  const findings = await sidecarFindings(root, series, zip);
  for (const place of zipFolders(venue, series)) {
    const { files, links } = await entriesOf(join(root, place));
    const strange = links.map((name) => `${place}/${name}`).filter((path) => !named.has(path));
    findings.push(...strange.map((path) => linkFinding(path, series)));
    for (const name of files) {
      const path = `${place}/${name}`;
      if (named.has(path)) continue;
      const isOurs = name.endsWith('.zip') || name.endsWith(SIDECAR);
      findings.push({
        kind: isOurs ? 'unlisted' : 'stranger',
        path,
        text: isOurs ? 'no manifest line names this file' : 'it is nothing of a lake',
        series,
        ...(isOurs ? { format: 'zip' as const } : {}),
      });
    }
  }
  return findings;
}

/** Beside each zip that its sidecar vouched for. */
async function sidecarFindings(root: string, series: Series, zip: Held): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { file, key, sha256, verified, period } of zip.lines()) {
    if (verified !== 'sidecar') continue;
    const path = `${file}${SIDECAR}`;
    const isThere = (await fileSize(join(root, path))) !== undefined;
    const text = isThere ? await readInside(join(root, path)) : undefined;
    if (text === sidecarText(key, sha256)) continue;
    const wrong = text === undefined ? 'it is not there' : 'it does not name the digest of its zip';
    findings.push({ kind: 'sidecar', path, text: wrong, series, format: 'zip', periods: [period] });
  }
  return findings;
}
