/** Where things lie in a lake. Relative paths use `/`; no name from outside is ever trusted as a path. */
import { join } from 'node:path';
import type { Market, Series } from '../model/task.js';
import { checkedFolder } from './path-checks.js';

export const MANIFEST = '_manifest.jsonl';

/** Device names of Windows, with or without an ending. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const UNSAFE = /[\u0000-\u001f\u007f/\\:*?"<>|%]/g;

/**
 * One folder or file name made of any text: raw UTF-8, with separators, control characters and reserved names
 * percent-encoded, so that it is reversible and never leaves its folder.
 */
export function safeName(name: string): string {
  let safe = name.replaceAll(UNSAFE, encodeCharacter);
  if (RESERVED.test(safe) || safe.startsWith('.')) safe = encodeCharacter(safe.charAt(0)) + safe.slice(1);
  if (/[. ]$/.test(safe)) safe = safe.slice(0, -1) + encodeCharacter(safe.slice(-1));
  return safe === '' ? '%' : safe;
}

function encodeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The inverse of `safeName`. */
export function originalName(safe: string): string {
  if (safe === '%') return '';
  return safe.replaceAll(/%([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Folder of a series below the lake's root. */
export function seriesFolder(venue: string, series: Series): string {
  const parts = [venue, series.market, safeName(series.dataset)];
  if (series.interval !== undefined) parts.push(`interval=${safeName(series.interval)}`);
  return [...parts, `symbol=${safeName(series.symbol)}`].join('/');
}

/** The venue, as far as it names folders. */
export interface VenueFolders {
  readonly name: string;
  readonly markets: Readonly<Record<Market, unknown>>;
}

/** The series whose folder has this place below the lake's root; undefined for any other place. */
export function seriesAt(venue: VenueFolders, place: string): Series | undefined {
  const names = seriesOfFolder(place);
  if (names === undefined || !isMarket(venue, names.market)) return undefined;
  const series = { ...names, market: names.market };
  // `symbol=%42TCUSDT` decodes to the same symbol as `symbol=BTCUSDT`, but the lake never writes it.
  return seriesFolder(venue.name, series) === place ? series : undefined;
}

function isMarket({ markets }: VenueFolders, name: string): name is Market {
  return Object.hasOwn(markets, name);
}

/** The inverse of `seriesFolder`, of a path that ends like it; undefined for any other. */
export function seriesOfFolder(path: string): (Omit<Series, 'market'> & { market: string }) | undefined {
  const found = /([^/\\]+)[/\\]([^/\\]+)[/\\](?:interval=([^/\\]+)[/\\])?symbol=([^/\\]+)$/.exec(path);
  const [, market, dataset, interval, symbol] = found ?? [];
  if (market === undefined || dataset === undefined || symbol === undefined) return undefined;
  const layer = interval === undefined ? {} : { interval: originalName(interval) };
  // In the order of the planner: a file's word of itself has the series as it stands.
  return { market, dataset: originalName(dataset), ...layer, symbol: originalName(symbol) };
}

/** An archive key as a path below the lake's root (`--format zip`, quarantine). */
export function keyPath(key: string): string {
  return key.split('/').map(safeName).join('/');
}

/** The lake's own places. */
export interface LakePaths {
  readonly root: string;
  readonly own: string;
  readonly staging: string;
  readonly failures: string;
  readonly quarantine: string;
  /** The path of a folder by its place below the root. Rejects when a symbolic link is on the way to it. */
  readonly folder: (place: string) => Promise<string>;
}

/** Rejects when one of the folders that a run writes to and clears is a symbolic link. */
export async function refuseLinkedFolders({ folder }: LakePaths): Promise<void> {
  await Promise.all(['.cryptodl/tmp', 'failures', 'quarantine'].map(folder));
}

export function lakePaths(root: string): LakePaths {
  const own = join(root, '.cryptodl');
  return {
    root,
    own,
    staging: join(own, 'tmp'),
    failures: join(root, 'failures'),
    quarantine: join(root, 'quarantine'),
    folder: (place) => checkedFolder(root, place),
  };
}
