/** Finds the files and links of a series that no line of its manifest names. */
import { join } from 'node:path';
import type { Exchange } from '../../exchange/exchange.js';
import { firstSymlink, isPartitionFile } from '../../files/path-checks.js';
import { safeKeyPath } from '../../lake/safe-names.js';
import { listEntries, type ListedSeries } from '../../lake/walk-lake.js';
import { FORMATS, type Format, type Series } from '../../model/task.js';
import { NOT_IN_MANIFEST, linkFinding, type LakeFinding } from './lake-finding.js';
import type { InspectedManifest } from '../../lake/manifest.js';

interface CheckedPart {
  /** The lake. */
  readonly root: string;
  readonly exchange: Exchange;
  /** Undefined: every format. */
  readonly format: Format | undefined;
}

export function unlistedFiles(
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
export function linkedZipFolders(
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
export function unlistedZips(
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
