/**
 * The orders of a lake: what runs were asked to have in it. A lake is judged by its orders, and later runs continue them. Each order is a
 * small JSON file, which is readable and survives a copy of the folder.
 */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readStateNow } from '../files/disk.js';
import { unlessMissing } from '../model/errors.js';
import { parseJson } from '../text/json.js';
import { shownPath } from '../text/printable.js';
import { backingOf, bringIn, withoutConflict } from '../files/backing.js';
import { FOLDERS, type LakePaths } from './layout.js';
import { publishText, removeFile, syncDirectory } from '../files/publish.js';
import { MOST_ORDERS, parseOrder, type Order } from './order.js';

export const ORDERS_FOLDER = `${FOLDERS.internal}/orders`;
const MAX_BYTES = 16 * 1024 * 1024;

export interface FoundOrders {
  /** In the order of their first run. */
  readonly orders: readonly Order[];
  /** The shown paths of files that are no orders. */
  readonly unreadable: readonly string[];
}

/** Rejects with `disk` for a link in the path of the folder, and with errors of the system. */
export async function readOrders(paths: Pick<LakePaths, 'folder'>): Promise<FoundOrders> {
  const folder = await paths.folder(ORDERS_FOLDER);
  const names = await withoutOtherWriter(folder, async () => {
    await backingOf(folder)?.openFolders([folder]);
    const entries = (await unlessMissing(readdir(folder))) ?? [];
    const found = entries.filter((name) => name.endsWith('.json')).slice(0, MOST_ORDERS);
    await bringIn(...found.map((name) => join(folder, name)));
    return found;
  });
  const orders: Order[] = [];
  const unreadable: string[] = [];
  for (const name of names) {
    const order = await readOrder(join(folder, name));
    // The name is the identity of an order.
    if (order !== undefined && `${order.id}.json` === name) orders.push(order);
    else unreadable.push(shownPath(join(folder, name)));
  }
  orders.sort((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1));
  return { orders, unreadable };
}

/** Calls `act` again with the orders in the bucket after another writer has changed one. */
export const withoutOtherWriter = <T>(folder: string, act: () => Promise<T>): Promise<T> =>
  withoutConflict(act, () => backingOf(folder)?.reopenFolder(folder));

/** Undefined for anything but an order in a regular file. */
async function readOrder(path: string): Promise<Order | undefined> {
  try {
    if (!(await lstat(path)).isFile()) return undefined;
    return parseOrder(parseJson(readStateNow(path, MAX_BYTES).toString('utf8')));
  } catch {
    return undefined;
  }
}

/** The caller must hold the lock of the lake. Rejects with errors of the system. */
export async function writeOrders(paths: LakePaths, orders: readonly Order[]): Promise<void> {
  if (orders.length === 0) return;
  const folder = await paths.folder(ORDERS_FOLDER);
  for (const order of orders)
    await publishText(paths.staging, join(folder, `${order.id}.json`), `${JSON.stringify(order)}\n`);
  await backingOf(folder)?.publishFolder(folder);
}

/** The caller must hold the lock of the lake. Rejects with errors of the system. */
export async function removeOrders(paths: LakePaths, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const folder = await paths.folder(ORDERS_FOLDER);
  for (const id of ids) await removeFile(join(folder, `${id}.json`));
  await syncDirectory(folder);
  await backingOf(folder)?.publishFolder(folder);
}
