/** `cryptodl remove`: drops series with their data, or orders. Without `--yes` it prints what it would remove. */
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { openLake } from '../../run/session/open-lake.js';
import { openSession, type Session } from '../../run/session/session.js';
import { refuseLinkedFolders, lakePaths, seriesFolder, FOLDERS, type LakePaths } from '../../lake/layout.js';
import { layerName, seriesName, type Series } from '../../model/task.js';
import type { ExitCode } from '../../model/exit-code.js';
import { bytesText, countText, listText } from '../../model/units.js';
import { givenWords } from '../../plan/options/print-options.js';
import { commandLine, printLines, tabbed } from '../../text/printable.js';
import { join, dirname } from 'node:path';
import { removeOrders, writeOrders, readOrders } from '../../lake/orders.js';
import { errnoOf, usage } from '../../model/errors.js';
import type { HeldFlag, SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { rm, rmdir } from 'node:fs/promises';
import type { Lock } from '../../lake/lock.js';
import { syncDirectory } from '../../files/publish.js';
import type { Exchange } from '../../exchange/exchange.js';
import { entryAt } from '../../files/path-checks.js';
import { seriesOfOrder } from '../../lake/catalogue/ordered-series.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import { MANIFEST_ENDING } from '../../lake/manifest-place.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { meantNames, isOfGlobs } from '../../plan/select/match-symbols.js';
import { givenFlags } from '../../plan/select/selection.js';
import { isOrderedBy, type Order } from '../../lake/order.js';
import { listEntries } from '../../lake/walk-lake.js';

/** Rejects with usage errors, with `locked` while another run writes, and as `planRemoval` does; then nothing was removed. */
export async function remove(command: VerbCall<SessionFlag | HeldFlag | 'order' | 'yes'>): Promise<ExitCode> {
  const { io, resolved } = command;
  return withSignals(command, async (request) => {
    const removed = await selectRemoved(request);
    const session = openSession(request);
    try {
      await refuseLinkedFolders(session.paths);
      const removal = resolved.options.yes
        ? await removeLocked(session, removed)
        : await planRemoval(session.paths, session.exchange, removed);
      await writeData(io, linesOf(removal));
      printLines(io.stderr, closing(removal, command));
      return 0;
    } finally {
      await session.close();
    }
  });
}

async function removeLocked(session: Session, removed: Removed): Promise<Removal> {
  const { paths, exchange, stop } = session;
  const { lock } = await openLake(session, 'cryptodl remove');
  try {
    const removal = await planRemoval(paths, exchange, removed);
    await removePlanned(paths, removal, { lock, signal: stop.signal });
    return removal;
  } finally {
    await lock.release();
  }
}

const linesOf = ({ orders, series }: Removal): string[] => [
  ...orders.map(({ order, left, symbols }) =>
    tabbed([
      'order',
      `${order.id} ${layerName(order)}`,
      left === undefined ? 'the whole order' : listText(symbols),
    ]),
  ),
  ...series.map(({ series: one, data, manifest }) => {
    const bytes = data.reduce((sum, file) => sum + file.bytes, 0);
    const own = manifest.length === 0 ? 'no manifest' : 'its manifest';
    return tabbed([
      'series',
      seriesName(one),
      `${countText(data.length, 'file')}, ${bytesText(bytes)}, ${own}`,
    ]);
  }),
  ...series.flatMap(({ kept }) =>
    kept.map((path) => tabbed(['stays', path, 'not a file that a manifest line names'])),
  ),
];

function closing({ orders, series }: Removal, { resolved, verb }: VerbCall<'order' | 'yes'>): string[] {
  const { yes, order } = resolved.options;
  const files = series.flatMap(({ data, manifest }) => [...data, ...manifest]);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const counts = `${countText(orders.length, 'order')}, ${countText(series.length, 'series')}, ${countText(files.length, 'file')}, ${bytesText(bytes)}`;
  const selection = givenWords(resolved, verb, ['out', ...SELECTION, 'order']);
  return [
    `${counts} ${yes ? 'removed' : 'to remove; nothing has changed'}`,
    ...(order === undefined ? [] : ['the data of an order stay; remove with --symbols removes series']),
    ...(series.length === 0 ? [] : ['a run whose --symbols select them downloads them again']),
    ...(yes ? [] : [`next  ${commandLine(['remove', ...selection, '--yes'])}`]),
  ];
}

/**
 * Removes what a plan names. The symbols leave the orders first, then the data go, and the manifest last: a removal that was killed leaves
 * series that no run continues, and the same command ends it. Rejects with `locked` if the lock was lost, with the error of the signal, and with errors of the disk.
 */
export async function removePlanned(
  paths: LakePaths,
  { orders, series }: Removal,
  { lock, signal }: { readonly lock: Pick<Lock, 'confirm'>; readonly signal: AbortSignal },
): Promise<void> {
  await lock.confirm();
  const changed = orders.flatMap(({ left }) => left ?? []);
  await writeOrders(paths, changed);
  const dropped = orders.flatMap(({ order, left }) => (left === undefined ? [order.id] : []));
  await removeOrders(paths, dropped);
  for (const { data, manifest } of series) {
    signal.throwIfAborted();
    await lock.confirm();
    await removeFiles(paths, data);
    await removeFiles(paths, manifest);
  }
}

async function removeFiles(paths: LakePaths, files: readonly RemovedFile[]): Promise<void> {
  // The path is checked again, because a link may have replaced a folder since the plan.
  for (const { path } of files) await rm(await paths.folder(path), { force: true });
  const folders = new Set(files.map(({ path }) => dirname(path)));
  for (const folder of folders) await syncDirectory(join(paths.root, folder));
  for (const folder of folders) await removeEmpty(paths.root, folder);
}

/** Removes a folder and those above it, up to the root of the lake, as far as they are empty. */
async function removeEmpty(root: string, folder: string): Promise<void> {
  for (let path = folder; path !== '.'; path = dirname(path)) {
    try {
      await rmdir(join(root, path));
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errnoOf(error))) return;
      throw error;
    }
  }
}

// Plans a removal: the orders that lose symbols, and the files that the manifests of the series name. Changes nothing.

const SELECTION = ['market', 'dataset', 'interval', 'symbols', 'quote'] as const;

/** What a command removes: orders without their data, or series with their symbols in the orders. */
interface Removed {
  readonly ids: readonly string[];
  readonly series: readonly Series[];
}

/** A path relative to the root of the lake. */
interface RemovedFile {
  readonly path: string;
  readonly bytes: number;
}

interface Removal {
  readonly orders: readonly ReturnType<typeof withoutSymbols>[];
  readonly series: readonly Awaited<ReturnType<typeof planSeries>>[];
}

/** The selection of a command line, from the series of the lake and those of its orders. Rejects with usage errors. */
async function selectRemoved(request: VerbRequest<HeldFlag | 'order'>): Promise<Removed> {
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
