/** An order: what a run was asked to have in the lake. */
import * as v from 'valibot';
import { parseDay, dayText } from '../model/calendar.js';
import { SettingsSchema } from '../model/settings-schema.js';
import type { Series } from '../model/task.js';

// A lake may come from another person: texts and lists have limits.
export const MOST_ORDERS = 10_000;
const MOST_SYMBOLS = 100_000;
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

/** The terms that all orders of a run have in common. Days are day numbers. */
export interface OrderTerms {
  readonly words: readonly string[];
  readonly firstDay: number | undefined;
  /** Undefined: the order is open. */
  readonly lastDay: number | undefined;
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

/** Undefined for anything but an order. */
export function parseOrder(value: unknown): Order | undefined {
  const parsed = v.safeParse(OrderSchema, value);
  return parsed.success ? parsed.output : undefined;
}

export function isOrderedBy(order: Order): (series: Series) => boolean {
  const symbols = new Set(order.symbols);
  return ({ market, dataset, interval, symbol }) =>
    order.market === market &&
    order.dataset === dataset &&
    order.interval === interval &&
    symbols.has(symbol);
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
