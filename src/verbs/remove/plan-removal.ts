/** Plans a removal: the orders that lose symbols, and the files that the manifests of the series name. Changes nothing. */
import { join } from 'node:path';
import type { Exchange } from '../../exchange/exchange.js';
import { entryAt } from '../../files/path-checks.js';
import { seriesOfOrder } from '../../lake/catalogue/ordered-series.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import { lakePaths, seriesFolder, FOLDERS, type LakePaths } from '../../lake/layout.js';
import { MANIFEST_ENDING } from '../../lake/manifest-place.js';
import { readOrders } from '../../lake/orders.js';
import { usage } from '../../model/errors.js';
import { seriesName, type Series } from '../../model/task.js';
import type { VerbRequest, HeldFlag } from '../../plan/options/verb-request.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { meantNames, isOfGlobs } from '../../plan/select/match-symbols.js';
import { givenFlags } from '../../plan/select/selection.js';
import { isOrderedBy, type Order } from '../../lake/order.js';
import { listEntries } from '../../lake/walk-lake.js';

export const SELECTION = ['market', 'dataset', 'interval', 'symbols', 'quote'] as const;

/** What a command removes: orders without their data, or series with their symbols in the orders. */
export interface Removed {
  readonly ids: readonly string[];
  readonly series: readonly Series[];
}

/** A path relative to the root of the lake. */
export interface RemovedFile {
  readonly path: string;
  readonly bytes: number;
}

export interface Removal {
  readonly orders: readonly ReturnType<typeof withoutSymbols>[];
  readonly series: readonly Awaited<ReturnType<typeof planSeries>>[];
}

/** The selection of a command line, from the series of the lake and those of its orders. Rejects with usage errors. */
export async function selectRemoved(request: VerbRequest<HeldFlag | 'order'>): Promise<Removed> {
  const { resolved, exchange } = request;
  const { order: ids = [] } = resolved.options;
  const isNarrowed = SELECTION.some((name) => givenFlags(resolved).has(name));
  if (ids.length > 0 && isNarrowed)
    throw usage(
      '--order drops whole orders and keeps their data, so it takes no selection of series',
      'leave --order out: the selected series are taken out of their orders too',
    );
  if (ids.length > 0) return { ids, series: [] };
  if (!isNarrowed)
    throw usage(
      'remove needs a selection',
      'name series with --symbols, --market, --dataset or --interval, or an order with --order ID (cryptodl check --json shows the ids)',
    );
  const { root, held } = await readVerbLake(request);
  const { orders } = await readOrders(lakePaths(root));
  // A removal that did not end may have left data without an order. A run that failed may have left an order without data.
  const ordered = orders.filter((order) => order.exchange === exchange.name).flatMap(seriesOfOrder);
  const known = new Map([...held, ...ordered].map((series) => [seriesName(series), series]));
  return { ids, series: await selectGiven([...known.values()], request) };
}

/**
 * Rejects with `disk` for a symbolic link in the path of a file, with `manifest-damaged` for a manifest that cannot be read as a whole, and
 * with a usage error for an unknown order.
 */
export async function planRemoval(paths: LakePaths, exchange: Exchange, removed: Removed): Promise<Removal> {
  const { orders } = await readOrders(paths);
  const unknown = removed.ids.find((id) => !orders.some((order) => order.id === id));
  if (unknown !== undefined)
    throw usage(`--order ${unknown}: the lake has no such order`, 'cryptodl check --json shows the ids');
  const changes = orders.flatMap((order) => {
    if (removed.ids.includes(order.id)) return withoutSymbols(order, order.symbols);
    const own = order.exchange === exchange.name ? removed.series.filter(isOrderedBy(order)) : [];
    const symbols = own.map(({ symbol }) => symbol);
    return symbols.length === 0 ? [] : withoutSymbols(order, symbols);
  });
  const series = [];
  for (const one of removed.series) series.push(await planSeries(paths, exchange, one));
  return { orders: changes, series };
}

/** `left`: the order without the symbols; undefined if it has no others. Drops words that mean a removed symbol. Words that mean other symbols stay, and globs that select it too: it is excluded from them. */
function withoutSymbols(order: Order, symbols: readonly string[]) {
  const gone = new Set(symbols);
  const rest = order.symbols.filter((symbol) => !gone.has(symbol));
  const words = order.words.filter((word) => !meantNames([word], symbols).every((name) => gone.has(name)));
  const excluded = symbols.filter((symbol) => isOfGlobs(words, symbol)).map((symbol) => `!${symbol}`);
  if (rest.length === 0) return { order, left: undefined, symbols };
  const left = words.length === 0 ? order.words : [...words, ...excluded];
  return { order, left: { ...order, words: left, symbols: rest }, symbols };
}

/** `manifest` is empty for an ordered series without one. `kept`: entries in the folder that no manifest line names, and names of files that are no files. They stay. */
async function planSeries(paths: LakePaths, exchange: Exchange, series: Series) {
  const folder = seriesFolder(exchange.name, series);
  const path = await paths.folder(folder);
  const manifestPath = `${FOLDERS.manifests}/${folder}${MANIFEST_ENDING}`;
  const names = await namedFiles(paths, exchange, series);
  const data: RemovedFile[] = [];
  const kept: string[] = [];
  for (const name of [...names.own.map((file) => `${folder}/${file}`), ...names.zips]) {
    const found = await fileOf(paths, name);
    if (found === 'other') kept.push(name);
    else if (found !== undefined) data.push(found);
  }
  const { files, folders, links } = listEntries(path);
  const own = new Set(names.own);
  for (const name of [...files, ...folders, ...links]) if (!own.has(name)) kept.push(`${folder}/${name}`);
  const manifest = await fileOf(paths, manifestPath);
  return { series, data, kept, manifest: typeof manifest === 'object' ? [manifest] : [] };
}

/** The files that manifest lines name, which were checked to be those of the series: in its folder, and from the root of the lake. */
async function namedFiles({ root }: LakePaths, exchange: Exchange, series: Series) {
  const manifest = await readHeld(root, exchange, series);
  const { suffix } = exchange.archive.sidecar ?? {};
  const zips = manifest.zip
    .files()
    .flatMap((file) => (suffix === undefined ? [file] : [file, file + suffix]));
  return { own: [...manifest.parquet.files(), ...manifest.csv.files()], zips };
}

/** Undefined for a missing file. */
async function fileOf(paths: LakePaths, path: string): Promise<RemovedFile | 'other' | undefined> {
  await paths.folder(path);
  const entry = await entryAt(join(paths.root, path));
  if (entry === undefined) return undefined;
  return entry.isFile() ? { path, bytes: entry.size } : 'other';
}
