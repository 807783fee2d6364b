/** Paths in a lake. Relative paths use `/`. Names from input become path components only through `safeName`. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { errnoOf, usage } from '../model/errors.js';
import type { Market, Series } from '../model/task.js';
import { shownPath } from '../text/printable.js';
import { checkedFolder } from '../files/path-checks.js';
import { safeName, originalName } from './safe-names.js';

/** Folder of a series, relative to the root of the lake. */
export function seriesFolder(exchange: string, series: Series): string {
  const parts = [exchange, series.market, safeName(series.dataset)];
  if (series.interval !== undefined) parts.push(`interval=${safeName(series.interval)}`);
  return [...parts, `symbol=${safeName(series.symbol)}`].join('/');
}

export interface ExchangeFolders {
  readonly name: string;
  readonly markets: Readonly<Record<Market, unknown>>;
  readonly archive: { readonly topFolder: string };
}

/** The series that has this folder, relative to the root of the lake; undefined for any other path. */
export function seriesAt(
  exchange: Pick<ExchangeFolders, 'name' | 'markets'>,
  folder: string,
): Series | undefined {
  const series = seriesOfFolder(folder);
  if (series === undefined || !Object.hasOwn(exchange.markets, series.market)) return undefined;
  // `symbol=%42TCUSDT` decodes to the same symbol as `symbol=BTCUSDT`, but cryptodl never writes it.
  return seriesFolder(exchange.name, series) === folder ? series : undefined;
}

/** The inverse of `seriesFolder` for any path that ends in such a folder; undefined for any other path. */
export function seriesOfFolder(path: string): Series | undefined {
  const found = /(?:^|[/\\])([^/\\]+)[/\\]([^/\\]+)[/\\](?:interval=([^/\\]+)[/\\])?symbol=([^/\\]+)$/.exec(
    path,
  );
  const [, market, dataset, interval, symbol] = found ?? [];
  if (market === undefined || dataset === undefined || symbol === undefined) return undefined;
  const layer = interval === undefined ? {} : { interval: originalName(interval) };
  // The order of the fields is that of the planner, because the metadata of files contains the series as JSON.
  return { market, dataset: originalName(dataset), ...layer, symbol: originalName(symbol) };
}

/**
 * The folders of cryptodl in the root of a lake. Readers of Parquet skip names that begin with `_` or `.`. Polars refuses a
 * folder with a file of another ending, so nothing but data lies in the folders of series.
 */
export const FOLDERS = {
  internal: '.cryptodl',
  manifests: '_manifests',
  failures: '_failures',
  quarantine: '_quarantine',
} as const;

/** In a bucket: zips that one worker puts for another. No verb reads them: mirrors list the folders of series, manifests and runs only. */
export const STAGED_ZIPS = `${FOLDERS.internal}/zips`;

/** Relative to the root. */
const STAGING = `${FOLDERS.internal}/tmp`;

export type LakePaths = Readonly<ReturnType<typeof lakePaths>>;

/** Throws a usage error if the path of a folder is a file or leads through one. A missing folder is no error here. */
export function refuseFile(path: string, flag = '--out'): void {
  let problem = 'is a file, not a folder';
  try {
    if (statSync(path).isDirectory()) return;
  } catch (error) {
    // Otherwise it is missing, or it cannot be read. In the second case, its first use fails.
    if (errnoOf(error) !== 'ENOTDIR') return;
    problem = 'is not a folder: a part of the path is a file';
  }
  throw usage(`${flag}: ${shownPath(path)} ${problem}`, `choose another ${flag}`);
}

/** Rejects with `disk` if a folder of cryptodl or `.cryptodl/tmp` is a symbolic link, and with `usage` if the root is a file. */
export async function refuseLinkedFolders({ root, folder }: LakePaths): Promise<void> {
  refuseFile(root);
  await Promise.all([...Object.values(FOLDERS), STAGING].map(folder));
}

/** The folder of staged files. Rejects with `disk` if a symbolic link has replaced it since the lake was opened. */
export const stagingFolder = ({ folder }: Pick<LakePaths, 'folder'>): Promise<string> => folder(STAGING);

/** Removes the folder of temporary files of a run. Rejects with `disk`, and removes nothing, if a symbolic link leads to it. */
export async function removeRunFolder(
  { root, internal, folder }: Pick<LakePaths, 'root' | 'internal' | 'folder'>,
  path: string,
): Promise<void> {
  if (path.startsWith(internal + sep)) await folder(relative(root, path).split(sep).join('/'));
  await rm(path, { recursive: true, force: true });
}

export function lakePaths(root: string) {
  const internal = join(root, FOLDERS.internal);
  return {
    root,
    /** `.cryptodl`: lock, journals, staged files. */
    internal,
    staging: join(root, STAGING),
    failures: join(root, FOLDERS.failures),
    quarantine: join(root, FOLDERS.quarantine),
    /** The absolute path of a folder; `path` is relative to the root. Rejects with `disk` when `path` contains a symbolic link. */
    folder: (path: string): Promise<string> => checkedFolder(root, path),
  };
}

/**
 * Throws a usage error that names the lake, if the path is in a folder that cryptodl makes in a lake. A lake in such a folder would give
 * readers of the outer lake each row twice. A lake that is there already is accepted.
 */
export function refuseInnerFolder(root: string, exchange: ExchangeFolders): void {
  const isLake = (folder: string): boolean => existsSync(join(folder, FOLDERS.manifests, exchange.name));
  const names: readonly string[] = [exchange.name, exchange.archive.topFolder, ...Object.values(FOLDERS)];
  for (let inner = root; dirname(inner) !== inner; inner = dirname(inner)) {
    const lake = dirname(inner);
    if (!names.includes(basename(inner)) || !isLake(lake) || isLake(root)) continue;
    // `data` is the folder of the zips, but also the default of --out, which a lake in the current folder may have below it.
    if (basename(inner) === exchange.archive.topFolder && isEmpty(inner)) continue;
    throw usage(
      `--out: ${shownPath(root)} is a folder of the lake ${shownPath(lake)}`,
      `--out ${shownPath(lake)}`,
    );
  }
}

/** The lake with a report in its folder of reports, by absolute paths; undefined for any other file. */
export function lakeOfReport(file: string): string | undefined {
  const root = dirname(dirname(file));
  const isLake = [FOLDERS.internal, FOLDERS.manifests].some((name) => existsSync(join(root, name)));
  return isLake && dirname(file) === join(root, FOLDERS.failures) ? root : undefined;
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    // It is missing, a file, or unreadable. Its first use gives the error.
    return true;
  }
}
