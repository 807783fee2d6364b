/** Joins the orders of a run with those of the lake. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { DAY_MS, dayOf, dayText, UTC } from '../model/calendar.js';
import { withStarts, type Order, type AskedOrder } from './order.js';

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
