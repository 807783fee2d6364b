/** `cryptodl remove`: drops series with their data, or orders. Without `--yes` it prints what it would remove. */
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { openLake } from '../../run/session/open-lake.js';
import { openSession, type Session } from '../../run/session/session.js';
import { refuseLinkedFolders, type LakePaths } from '../../lake/layout.js';
import { layerName, seriesName } from '../../model/task.js';
import type { ExitCode } from '../../model/exit-code.js';
import { bytesText, countText, listText } from '../../model/units.js';
import { givenWords } from '../../plan/options/print-options.js';
import { commandLine, printLines, tabbed } from '../../text/printable.js';
import { join, dirname } from 'node:path';
import { removeOrders, writeOrders } from '../../lake/orders.js';
import { errnoOf } from '../../model/errors.js';
import type { HeldFlag, SessionFlag } from '../../plan/options/verb-request.js';
import { rm, rmdir } from 'node:fs/promises';
import type { Lock } from '../../lake/lock.js';
import { syncDirectory } from '../../files/publish.js';
import { selectRemoved, planRemoval, SELECTION } from './plan-removal.js';
import type { Removed, Removal, RemovedFile } from './plan-removal.js';

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
