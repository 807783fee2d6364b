/** One series: its manifest line by line, its files against what the lines say, and files that no line names. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../errors.js';
import { keyFile, MANIFEST } from '../lake/layout.js';
import { inspectManifest } from '../lake/inspect-manifest.js';
import type { InspectedManifest } from '../lake/inspect-manifest.js';
import type { Held, ObjectLine } from '../lake/manifest.js';
import type { Format, Series } from '../task.js';
import { SIDECAR, seriesPrefix } from '../venue/keys.js';
import type { Venue } from '../venue/venue.js';
import { checkFile } from './check-file.js';
import type { FileReader } from './check-file.js';
import type { Finding } from './finding.js';
import type { SeriesFolder } from './walk-lake.js';

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
const PARTITION = /^\d{4}-\d{2}(-\d{2})?\.(parquet|csv)$/;

export async function checkSeries(context: CheckContext, folder: SeriesFolder): Promise<SeriesCheck> {
  const place = folder.path.slice(context.root.length + 1).replaceAll('\\', '/');
  const inspected = await inspectManifest(folder.path);
  const findings: Finding[] = lineFindings(folder.series, place, inspected);
  const broken: ObjectLine[] = [];
  let files = 0;
  let bytes = 0;
  // What a later version says of its files is not known here: they are neither right nor wrong.
  if (inspected.newer.length > 0) return { folder, place, inspected, findings, files, bytes, broken };
  for (const format of FORMATS) {
    if (context.format !== undefined && format !== context.format) continue;
    const held = inspected.manifest[format];
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
  findings.push(...fileFindings(context, folder, place, inspected));
  findings.push(...(await zipFindings(context, folder.series, inspected)));
  return { folder, place, inspected, findings, files, bytes, broken };
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
  { series, files, deeper }: SeriesFolder,
  place: string,
  { exists, manifest }: InspectedManifest,
): Finding[] {
  const named = new Set(FORMATS.flatMap((format) => manifest[format].lines().map(({ file }) => file)));
  const ours = files.filter((name) => PARTITION.test(name) && !named.has(name));
  const findings: Finding[] = [];
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
  if (!exists && ours.length > 0)
    findings.push({
      kind: 'no-manifest',
      path: place,
      text: `the folder has files and no ${MANIFEST}`,
      series,
    });
  const strangers = [...files.filter((name) => !PARTITION.test(name) && name !== MANIFEST), ...deeper];
  for (const name of strangers)
    findings.push({ kind: 'stranger', path: `${place}/${name}`, text: 'it is nothing of a lake', series });
  return findings;
}

/** Only where the series has zips: elsewhere a folder of the archive's keys is somebody's own. */
async function zipFindings(
  { root, venue, format }: CheckContext,
  series: Series,
  { manifest: { zip } }: InspectedManifest,
): Promise<Finding[]> {
  if (zip.size === 0 || (format !== undefined && format !== 'zip')) return [];
  const named = new Set(zip.lines().flatMap(({ file }) => [file, `${file}${SIDECAR}`]));
  const findings: Finding[] = [];
  for (const cadence of ['daily', 'monthly'] as const) {
    const prefix = seriesPrefix(venue, series, cadence);
    const place = keyFile(prefix.slice(0, -1));
    for (const name of await filesIn(join(root, place))) {
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

async function filesIn(path: string): Promise<string[]> {
  try {
    const found = await readdir(path, { withFileTypes: true });
    return found
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return [];
    throw error;
  }
}
