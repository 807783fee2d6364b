/** Joins the orders of a run with those of the lake, and changes these, again if another writer changes them meanwhile. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { dayOf, dayText, UTC } from '../model/calendar.js';
import { DAY_MS } from '../model/units.js';
import { toCryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import type { LakePaths } from './layout.js';
import { isOrderedBy, firstDayOf, withStarts, type Order, type AskedOrder } from './order.js';
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

/** The layers of the lake and the settings that make two orders the same kind. */
const kindOf = ({ verb, exchange, market, dataset, interval, shard, quote, settings }: AskedOrder): string =>
  JSON.stringify([verb, exchange, market, dataset, interval, shard, quote, settings.format]);

/**
 * The orders after a run that asks for `asked`, and those of them that are new or changed. An open order with at most the words of the
 * run takes those of the run, and the earlier first day. An open order with more words than the run stays as it is.
 */
export function joinOrders(
  held: readonly Order[],
  asked: readonly AskedOrder[],
  at: string,
): { readonly orders: readonly Order[]; readonly changed: readonly Order[] } {
  const orders = new Map(held.map((order) => [order.id, order]));
  const changed = new Map<string, Order>();
  for (const one of asked) {
    const order = joined([...orders.values()], one, at);
    const isNew = !isDeepStrictEqual(orders.get(order.id), order);
    orders.set(order.id, order);
    if (isNew) changed.set(order.id, order);
  }
  return { orders: [...orders.values()], changed: [...changed.values()] };
}

function joined(held: readonly Order[], { reach, ...asked }: AskedOrder, at: string): Order {
  const same = held.filter(
    (order) => kindOf(order) === kindOf(asked) && (order.last === null) === (asked.last === null),
  );
  const fits = (order: Order): boolean =>
    asked.last === null
      ? selectsAll(asked.words, order.words) || selectsAll(order.words, asked.words)
      : order.last === asked.last && order.first === asked.first && selectsAll(order.words, asked.words);
  const known = same.find(fits);
  if (known === undefined) {
    const order: Order = { v: 1, id: freeId(held, asked), ...asked, symbols: [...asked.symbols].sort(), at };
    return withStarts(order, asked.symbols, reach);
  }
  // By the clock of an earlier run, this one lies in the past. One of the clocks is wrong: the order begins no earlier, and the days of this run are an
  // order of their own.
  const isPast = Date.parse(at) < Date.parse(known.at) - DAY_MS;
  const yesterday = dayText(dayOf(Date.parse(at), UTC) - 1);
  const isEarlier = earlier(known.first, asked.first) !== known.first;
  if (isPast && isEarlier && asked.last === null && (asked.first ?? '') <= yesterday)
    return joined(held, { ...asked, reach, last: yesterday }, at);
  const { months, ...rest } = known;
  const order: Order = {
    ...rest,
    ...(months === undefined || asked.months === undefined ? {} : { months }),
    words: selectsAll(known.words, asked.words) ? known.words : asked.words,
    settings: asked.settings,
    ...(asked.join === undefined ? {} : { join: asked.join }),
    first: isPast ? known.first : earlier(known.first, asked.first),
    symbols: [...new Set([...known.symbols, ...asked.symbols])].sort(),
  };
  return withStarts(order, asked.symbols, reach, known);
}

const isExclusion = (word: string): boolean => word.startsWith('!');

/** Whether words have all names and globs of the others, and no further exclusions. */
function selectsAll(words: readonly string[], others: readonly string[]): boolean {
  const [known, other] = [new Set(words), new Set(others)];
  return (
    others.every((word) => isExclusion(word) || known.has(word)) &&
    words.every((word) => !isExclusion(word) || other.has(word))
  );
}

function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return null;
  return one < other ? one : other;
}

/** An id that no held order has: one that lost symbols keeps the id of the words that it had. */
function freeId(held: readonly Order[], asked: AskedOrder): string {
  const range = asked.last === null ? [] : [asked.first, asked.last];
  const name = JSON.stringify([kindOf(asked), [...asked.words].sort(), ...range]);
  const id = createHash('sha256').update(name).digest('hex').slice(0, 16);
  return held.some((order) => order.id === id) ? freeId(held, { ...asked, words: [...asked.words, id] }) : id;
}
