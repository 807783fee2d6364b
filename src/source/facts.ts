/**
 * Owner of the venue's schemas: config/binance.json (where and since when), config/binance-datasets.json (what) and
 * config/halts.json (when a market stood still).
 */
import * as v from 'valibot';
import { MARKETS, PRESETS, readConfig, STRATEGIES } from './names.js';

/**
 * `time`: epoch ms or us, told apart by magnitude; `datetime`: UTC text; `date` and `hour`: two parts of an instant;
 * `flag`: true or false in any case; `symbol`: checked against the series and dropped.
 */
const COLUMN_TYPES = [
  'time',
  'datetime',
  'date',
  'hour',
  'number',
  'integer',
  'flag',
  'text',
  'symbol',
] as const;

const Column = v.strictObject({
  name: v.string(),
  /** Name in the archive's header, where ours differs. */
  published: v.optional(v.string()),
  type: v.picklist(COLUMN_TYPES),
  nullable: v.optional(v.boolean(), false),
  /** What it is called in a row of REST: a key, the position in a list, or `dataset.key` where several are joined. */
  field: v.optional(v.string()),
  /** The archive's files do not have it. */
  restOnly: v.optional(v.boolean(), false),
  /** Of the value; of times, how they are published. */
  unit: v.optional(v.string()),
  doc: v.string(),
});

const Dataset = v.strictObject({
  title: v.string(),
  /** Other words under which people look for it. */
  aliases: v.array(v.string()),
  /** Seconds from row to row, where that is fixed and not told by the interval. */
  rowSeconds: v.optional(v.number()),
  /** How far outside of its period a row may be: labels of 00:00 of the next day, and times that are off by seconds. */
  edgeSeconds: v.optional(v.number(), 30),
  /** Leading columns of the total order; the remaining columns break ties. */
  sort: v.pipe(v.array(v.string()), v.minLength(1)),
  partition: v.picklist(['day', 'month']),
  /** Intervals whose files hold a day, where the others hold a month. */
  dayPartitionIntervals: v.optional(v.array(v.string()), []),
  columns: v.pipe(v.array(Column), v.minLength(1)),
  notes: v.array(v.string()),
});

const Day = v.pipe(v.string(), v.isoDate());
const Month = v.pipe(v.string(), v.regex(/^\d{4}-(0[1-9]|1[0-2])$/));
/** First and last known period; without `last` it is published to this day. */
const spanOf = <P extends typeof Day | typeof Month>(period: P) =>
  v.strictObject({ first: v.optional(period), last: v.optional(period) });

export const REST_HOSTS = ['fapi', 'dapi', 'spot'] as const;

/** One route of REST, and how it is paged (facts of the REST interface, sections 3 to 8). */
const Route = v.strictObject({
  host: v.picklist(REST_HOSTS),
  path: v.string(),
  bucket: v.picklist(['spot', 'futures', 'futuresData', 'funding']),
  weight: v.number(),
  /** Which rows come when more than `limit` fit: the first, the last, or those from an id on. */
  pager: v.picklist(['start', 'end', 'id']),
  limit: v.number(),
  /** Fields of a row's time and, for `id`, of its id. */
  time: v.string(),
  id: v.optional(v.string(), ''),
  /** `$symbol`, `$pair` and `$interval` stand for those of the series. */
  parameters: v.record(v.string(), v.string()),
  /** How far back it answers, from now. */
  reachHours: v.optional(v.number()),
  /** Longest time between start and end of a request. */
  windowDays: v.optional(v.number()),
  /** Rows of this time before the wanted ones are needed to make out theirs. */
  lookBackHours: v.optional(v.number(), 0),
  /** From this day on the archive has microseconds, so that rows beside its own have them as well. */
  microsecondsFrom: v.optional(Day),
  /** No series is older. */
  first: v.optional(Day),
  /** It knows pairs, so only the perpetual contract of a pair stands for it. */
  perpetualOnly: v.optional(v.boolean(), false),
});

/** A dataset that REST has in several routes: rows of the same time become one. */
const Join = v.strictObject({
  joins: v.array(v.string()),
  interval: v.string(),
  /** Before this day the archive's labels are those of the ends: a day runs from its second label to the next midnight. */
  endLabelsBefore: v.optional(Day),
});

const Offer = v.strictObject({
  cadences: v.strictObject({ daily: v.optional(spanOf(Day)), monthly: v.optional(spanOf(Month)) }),
  /** The venue took it out of the archive. */
  removed: v.optional(v.boolean(), false),
  /** Whether published files have a header line; every file is looked at all the same. */
  header: v.picklist(['never', 'some', 'always']),
  /** Names of interval lists, for datasets with an interval layer in their keys. */
  intervals: v.optional(v.strictObject({ daily: v.string(), monthly: v.string() })),
  /** Columns that this market's files do not have. */
  omit: v.optional(v.array(v.string()), []),
  /** By name: what is different in this market. */
  columns: v.optional(v.record(v.string(), v.partial(Column)), {}),
  notes: v.optional(v.array(v.string()), []),
  rest: v.optional(v.union([Route, Join])),
});

const Market = v.strictObject({
  path: v.string(),
  title: v.string(),
  datasets: v.record(v.string(), Offer),
});

/** Of ours, or as the venue counts: weight in each window of its clock. */
const Bucket = v.union([
  v.strictObject({ permitsPerSecond: v.number(), burst: v.number() }),
  v.strictObject({ permits: v.number(), windowSeconds: v.number(), family: v.string() }),
]);
const BUCKETS = ['archive', 'listing', 'spot', 'futures', 'futuresData', 'funding'] as const;

const VenueFacts = v.strictObject({
  name: v.string(),
  /** Before the first object of any series: where a range that reaches further back starts. */
  firstDay: Day,
  /** When its days begin: hours after 00:00 UTC of their date; negative: before it. */
  dayStartHours: v.optional(v.number(), 0),
  /** The market of a command line without --market. */
  defaultMarket: v.string(),
  /** `origin`: the same objects as `archive`, without the network of caches in front. */
  hosts: v.strictObject({
    archive: v.string(),
    origin: v.string(),
    listing: v.string(),
    fapi: v.string(),
    dapi: v.string(),
    spot: v.string(),
    /** The same routes of spot, also for places that `spot` does not serve. */
    spotPublic: v.string(),
  }),
  buckets: v.strictObject(v.entriesFromList(BUCKETS, Bucket)),
  intervals: v.record(v.string(), v.pipe(v.array(v.string()), v.minLength(1))),
  markets: v.record(v.string(), Market),
});

const RetryPreset = v.strictObject({
  strategy: v.picklist(STRATEGIES),
  retries: v.number(),
  baseDelayMs: v.number(),
  factor: v.number(),
  maxDelayMs: v.number(),
});
const RetryPresets = v.strictObject(v.entriesFromList(PRESETS, RetryPreset));

const Instant = v.pipe(
  v.string(),
  v.isoTimestamp(),
  v.check((text) => text.endsWith('Z'), 'not UTC'),
);

/** `[from, to)`: nothing was traded in the whole market. `source`: where that was written. */
const Halt = v.pipe(
  v.strictObject({
    market: v.picklist(MARKETS),
    from: Instant,
    to: Instant,
    source: v.pipe(v.string(), v.nonEmpty()),
  }),
  v.check(({ from, to }) => Date.parse(from) < Date.parse(to), 'ends before it begins'),
);

export type HaltFacts = v.InferOutput<typeof Halt>;

export type RouteSpec = v.InferOutput<typeof Route>;
export type JoinSpec = v.InferOutput<typeof Join>;
export type ColumnSpec = v.InferOutput<typeof Column>;
export type DatasetFacts = v.InferOutput<typeof Dataset>;
export type OfferFacts = v.InferOutput<typeof Offer>;
export type VenueFacts = v.InferOutput<typeof VenueFacts>;

/** Throws when the shipped file does not fit its schema: a bug of the package, not of the user. */
export function readVenueFacts(): VenueFacts {
  return v.parse(VenueFacts, readConfig('binance.json'));
}

export function readDatasetFacts(): Readonly<Record<string, DatasetFacts>> {
  return v.parse(v.record(v.string(), Dataset), readConfig('binance-datasets.json'));
}

/** Throws for a line without a source, and for one that ends before it begins. */
export function parseHalts(content: unknown): HaltFacts[] {
  return v.parse(v.array(Halt), content);
}

export function readHalts(): HaltFacts[] {
  return parseHalts(readConfig('halts.json'));
}

export function loadRetryPresets(): v.InferOutput<typeof RetryPresets> {
  return v.parse(RetryPresets, readConfig('retry-presets.json'));
}
