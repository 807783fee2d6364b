/**
 * The orders of a lake: what runs were asked to have in it. A lake is judged by its orders, and later runs continue them. Each order is a
 * small JSON file, which is readable and survives a copy of the folder.
 */
import { createHash } from 'node:crypto';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { readStateNow } from '../files/state-file.js';
import { DAY_MS, dayOf, dayText, parseDay, UTC } from '../model/calendar.js';
import { toCryptodlError, unlessMissing } from '../model/errors.js';
import { SettingsSchema } from '../model/settings-schema.js';
import type { Series } from '../model/task.js';
import { parseJson } from '../text/json.js';
import { shownPath } from '../text/printable.js';
import { backingOf, bringIn, withoutConflict } from '../files/backing.js';
import { FOLDERS } from './layout.js';
import type { LakePaths } from './layout.js';
import { publishText, removeFile, syncDirectory } from '../files/publish.js';

export const ORDERS_FOLDER = `${FOLDERS.internal}/orders`;

// A lake may come from another person: texts and lists have limits.
const MOST_ORDERS = 10_000;
const MOST_SYMBOLS = 100_000;
const MAX_BYTES = 16 * 1024 * 1024;
const text = v.pipe(v.string(), v.maxLength(1000));
const texts = v.pipe(v.array(text), v.maxLength(MOST_SYMBOLS));
const day = v.pipe(
  v.string(),
  v.check((value) => parseDay(value) !== undefined),
);

const OrderSchema = v.strictObject({
  v: v.literal(1),
  id: v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/)),
  verb: v.picklist(['vision', 'metrics']),
  exchange: text,
  market: text,
  dataset: text,
  interval: v.optional(text),
  /** The words of --symbols and of its lists. */
  words: texts,
  quote: texts,
  shard: v.optional(text),
  settings: SettingsSchema,
  /** The earliest day that was ever asked for; null: the first day of each series. */
  first: v.nullable(day),
  /**
   * The days from which symbols are asked for, where they are later than `first`, or it is null: the first published day, as the plan of a run found
   * it; of rows that only REST has, the first day that it had when the symbol joined.
   */
  starts: v.optional(v.record(text, day)),
  /** The last day; null: the order is open, and later runs continue it. */
  last: v.nullable(day),
  /** The runs of an open order ask for complete months only. */
  months: v.optional(v.literal(true)),
  /** `metrics` takes the archive too. */
  join: v.optional(v.literal('archive')),
  /** The symbols that the words have selected so far. */
  symbols: texts,
  /** The ISO instant of the first run. */
  at: v.pipe(v.string(), v.isoTimestamp()),
});

export type Order = Readonly<v.InferOutput<typeof OrderSchema>>;

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
function withoutOtherWriter<T>(folder: string, act: () => Promise<T>): Promise<T> {
  return withoutConflict(act, () => backingOf(folder)?.reopenFolder(folder));
}

/** Undefined for anything but an order in a regular file. */
async function readOrder(path: string): Promise<Order | undefined> {
  try {
    if (!(await lstat(path)).isFile()) return undefined;
    const parsed = v.safeParse(OrderSchema, parseJson(readStateNow(path, MAX_BYTES).toString('utf8')));
    return parsed.success ? parsed.output : undefined;
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

/** The changed orders, of all orders of the lake. It is called again when another writer of a lake in a bucket has changed them meanwhile. */
export type OrderChange = (held: readonly Order[]) => readonly Order[];

/** Resolves with the orders before, and with those that were written. */
async function changeOrders(
  paths: LakePaths,
  change: OrderChange,
): Promise<{ readonly held: readonly Order[]; readonly changed: readonly Order[] }> {
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

/** The terms that all orders of a run have in common. Days are day numbers. */
export interface OrderTerms {
  readonly words: readonly string[];
  readonly first: number | undefined;
  /** Undefined: the order is open. */
  readonly last: number | undefined;
  readonly isOfMonths: boolean;
}

const AskedOrderSchema = v.strictObject({
  ...v.omit(OrderSchema, ['v', 'id', 'at', 'starts']).entries,
  /** The first day that REST has, of rows that no other source has. */
  reach: v.optional(day),
});

export type AskedOrder = Readonly<v.InferOutput<typeof AskedOrderSchema>>;

const AskedSchema = v.pipe(v.array(AskedOrderSchema), v.maxLength(MOST_ORDERS));

/** Orders that come from another program; undefined for anything else. */
export function parseAsked(value: unknown): readonly AskedOrder[] | undefined {
  const parsed = v.safeParse(AskedSchema, value);
  return parsed.success ? parsed.output : undefined;
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

/** The first day that the order asks for of a symbol; undefined: the first day of the series, which is not known. */
export function firstDayOf(
  { first, starts = {} }: Pick<Order, 'first' | 'starts'>,
  symbol: string,
): number | undefined {
  const asked = Object.hasOwn(starts, symbol) ? starts[symbol] : first;
  return parseDay(asked ?? '');
}

/** The order with the days from which these symbols are asked for. `reach`: the first day that REST has now, if only it has their rows. */
export function withStarts(
  order: Order,
  symbols: readonly string[],
  reach: string | undefined,
  before?: Order,
): Order {
  if (reach === undefined && order.first === null) return order;
  const own = new Set(symbols);
  const starts = new Map(Object.entries(order.starts ?? {}).filter(([symbol]) => !own.has(symbol)));
  for (const symbol of own) {
    if (reach === undefined) break;
    const known = before?.symbols.includes(symbol) === true ? firstDayOf(before, symbol) : undefined;
    const start = known !== undefined && dayText(known) < reach ? dayText(known) : reach;
    if (start > (order.first ?? '')) starts.set(symbol, start);
  }
  const { starts: _, ...rest } = order;
  return starts.size === 0 ? rest : { ...rest, starts: Object.fromEntries(starts) };
}

/** The layers of the lake and the settings that make two orders the same kind. */
function kindOf({ verb, exchange, market, dataset, interval, shard, quote, settings }: AskedOrder): string {
  return JSON.stringify([verb, exchange, market, dataset, interval, shard, quote, settings.format]);
}

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

export function isOrderedBy(order: Order): (series: Series) => boolean {
  const symbols = new Set(order.symbols);
  return ({ market, dataset, interval, symbol }) =>
    order.market === market &&
    order.dataset === dataset &&
    order.interval === interval &&
    symbols.has(symbol);
}
