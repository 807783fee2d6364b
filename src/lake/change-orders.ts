/** Changes the orders of a lake, again if another writer changes them meanwhile. */
import { isDeepStrictEqual } from 'node:util';
import { dayText } from '../model/calendar.js';
import { toCryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import type { LakePaths } from './layout.js';
import { isOrderedBy, firstDayOf, type Order, type AskedOrder } from './order.js';
import { joinOrders } from './join-orders.js';
import { ORDERS_FOLDER, readOrders, withoutOtherWriter, writeOrders, removeOrders } from './orders.js';

/** The changed orders, of all orders of the lake. It is called again when another writer of a lake in a bucket has changed them meanwhile. */
export type OrderChange = (held: readonly Order[]) => readonly Order[];

/** Resolves with the orders before, and with those that were written. */
async function changeOrders(paths: LakePaths, change: OrderChange) {
  return withoutOtherWriter(await paths.folder(ORDERS_FOLDER), async () => {
    const { orders: held } = await readOrders(paths);
    const changed = change(held);
    await writeOrders(paths, changed);
    return { held, changed };
  });
}

/**
 * Writes changed orders and calls `act`, the plan of their run: a run that is killed or reaches no host leaves its orders too. A usage error takes
 * them back, because a later run would fetch what this one was refused.
 */
export async function withOrders<T>(
  paths: LakePaths,
  change: OrderChange,
  act: () => Promise<T>,
): Promise<T> {
  const { held, changed } = await changeOrders(paths, change);
  try {
    return await act();
  } catch (error) {
    if (toCryptodlError(error).code === 'usage') await takeBack(paths, held, changed);
    throw error;
  }
}

/** An order that another writer has changed since stays. */
async function takeBack(paths: LakePaths, held: readonly Order[], changed: readonly Order[]): Promise<void> {
  const isAsWritten = (order: Order): boolean => changed.some((each) => isDeepStrictEqual(each, order));
  await withoutOtherWriter(await paths.folder(ORDERS_FOLDER), async () => {
    const { orders } = await readOrders(paths);
    const ids = new Set(orders.filter(isAsWritten).map(({ id }) => id));
    const before = held.filter(({ id }) => ids.has(id));
    for (const { id } of before) ids.delete(id);
    await writeOrders(paths, before);
    await removeOrders(paths, [...ids]);
  });
}

/** Joins orders with those of the lake. The caller must hold the lock of the lake. Rejects with errors of the system. */
export async function addOrders(
  paths: LakePaths,
  asked: readonly AskedOrder[],
  nowMs: number,
): Promise<void> {
  if (asked.length === 0) return;
  await changeOrders(paths, (held) => joinOrders(held, asked, new Date(nowMs).toISOString()).changed);
}

/**
 * Notes the first published days of series in the orders that begin with them. Without it, a series whose first objects are not fetched yet would seem to
 * begin with the first one that the lake holds. The caller must hold the lock of the lake. Rejects with errors of the system.
 */
export async function noteStarts(
  paths: LakePaths,
  exchange: string,
  starts: ReadonlyMap<Series, number>,
): Promise<void> {
  if (starts.size === 0) return;
  const noted = (order: Order): readonly Order[] => {
    if (order.exchange !== exchange || order.first !== null) return [];
    const isOwn = isOrderedBy(order);
    const own = [...starts].filter(
      ([series, start]) => isOwn(series) && start < (firstDayOf(order, series.symbol) ?? Infinity),
    );
    const days = Object.fromEntries(own.map(([{ symbol }, start]) => [symbol, dayText(start)]));
    return own.length === 0 ? [] : [{ ...order, starts: { ...order.starts, ...days } }];
  };
  await changeOrders(paths, (held) => held.flatMap(noted));
}
