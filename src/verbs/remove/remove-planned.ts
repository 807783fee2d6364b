/**
 * Removes what a plan names. The symbols leave the orders first, then the data go, and the manifest last: a removal that was killed leaves
 * series that no run continues, and the same command ends it.
 */
import { rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LakePaths } from '../../lake/layout.js';
import type { Lock } from '../../lake/lock.js';
import { removeOrders, writeOrders } from '../../lake/orders.js';
import { syncDirectory } from '../../files/publish.js';
import { errnoOf } from '../../model/errors.js';
import type { RemovedFile, RemovalPlan } from './plan-removal.js';

/** Rejects with `locked` if the lock was lost, with the error of the signal, and with errors of the disk. */
export async function removePlanned(
  paths: LakePaths,
  { orders, series }: RemovalPlan,
  { lock, signal }: { readonly lock: Pick<Lock, 'confirm'>; readonly signal: AbortSignal },
): Promise<void> {
  await lock.confirm();
  await writeOrders(
    paths,
    orders.flatMap(({ left }) => left ?? []),
  );
  await removeOrders(
    paths,
    orders.flatMap(({ order, left }) => (left === undefined ? order.id : [])),
  );
  for (const { data, manifest } of series) {
    signal.throwIfAborted();
    await lock.confirm();
    await removeFiles(paths, data);
    if (manifest !== undefined) await removeFiles(paths, [manifest]);
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
