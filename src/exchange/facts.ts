/** Reads and checks the files of config/: binance.json, binance-datasets.json (columns), halts.json (market halts) and retry-presets.json. */
import * as v from 'valibot';
import { PRESETS, readConfig, STRATEGIES } from './names.js';

const Column = v.strictObject({
  name: v.string(),
  /** The name in the header of published files, if it differs. */
  published: v.optional(v.string()),
  /**
   * `time`: epoch ms or us, distinguished by magnitude. `datetime`: UTC text. `date` and `hour`: two parts of a time. `flag`: true or
   * false, upper or lower case. `symbol`: must be the symbol of the series, and is not written.
   */
  type: v.picklist(['time', 'datetime', 'date', 'hour', 'number', 'integer', 'flag', 'text', 'symbol']),
  nullable: v.optional(v.boolean(), false),
  /** The field of a REST row: a key, a position in a list, or `dataset.key` in a join. */
  field: v.optional(v.string()),
  /** Only rows from REST have this column. */
  restOnly: v.optional(v.boolean(), false),
  /** Unit of the value; for times, their published form. */
  unit: v.optional(v.string()),
  doc: v.string(),
});

const Dataset = v.strictObject({
  title: v.string(),
  /** Other names, for suggestions. */
  aliases: v.array(v.string()),
  /** Seconds between rows, if fixed and not given by the interval. */
  rowSeconds: v.optional(v.number()),
  /** Seconds by which a row may lie outside of its period: some labels are 00:00 of the next day, and some times are a few seconds off. */
  edgeSeconds: v.optional(v.number(), 30),
  /**
   * The column with the hours since the row before, for rows at scheduled times. A row is identified by its scheduled minute, because the time of
   * a row varies by milliseconds.
   */
  hoursSinceLast: v.optional(v.string()),
  /** Its objects prove that a symbol is traded: those of these intervals, or all of a dataset without intervals. */
  provesTrading: v.optional(v.array(v.string())),
  /** The columns of the sort order. Rows that are equal in all of them keep their published order. */
  sort: v.pipe(v.array(v.string()), v.minLength(1)),
  /** Whether the sort columns are the key of a row: of two rows with one key and different values, the first published one counts. */
  hasKey: v.optional(v.boolean(), true),
  partition: v.picklist(['day', 'month']),
  /**
   * Rows at irregular times, at all hours. A time without rows is a silence, in which rows are missing, if it is at least this long and long for the
   * rate of the object. `isSteady`: all days have about the same number of rows.
   */
  rate: v.optional(v.strictObject({ silenceSeconds: v.number(), isSteady: v.optional(v.boolean(), false) })),
  /** Values that cannot be right. */
  values: v.optional(
    v.strictObject({
      /** Columns whose values do not fall from left to right. */
      ordered: v.optional(v.array(v.pipe(v.array(v.string()), v.minLength(2)))),
      /** Columns of prices, above 0. */
      positive: v.optional(v.array(v.string())),
      notNegative: v.optional(v.array(v.string())),
      /** Columns that do not all keep one value, other than 0, for a whole day and one value of the other key columns. */
      constant: v.optional(v.array(v.string())),
    }),
  ),
  /** Intervals with one file per day, in a dataset with one file per month. */
  dayPartitionIntervals: v.optional(v.array(v.string()), []),
  columns: v.pipe(v.array(Column), v.minLength(1)),
  notes: v.array(v.string()),
});

const Day = v.pipe(v.string(), v.isoDate());
const Month = v.pipe(v.string(), v.regex(/^\d{4}-(0[1-9]|1[0-2])$/));
/** First and last known period. Without `last`, the dataset is still published, or its end is not known. */
const spanOf = <P extends typeof Day | typeof Month>(period: P) =>
  v.strictObject({ first: v.optional(period), last: v.optional(period) });

const Route = v.strictObject({
  /** A name in `hosts`. */
  host: v.string(),
  path: v.string(),
  /** A name in `buckets`. */
  bucket: v.string(),
  weight: v.number(),
  /** The rows of an answer if more than `limit` match the request: the first, the last, or those from an id on. */
  pager: v.picklist(['start', 'end', 'id']),
  limit: v.number(),
  /** Field of the time of a row, and of its id for the pager `id`. */
  time: v.string(),
  id: v.optional(v.string(), ''),
  /** `$symbol`, `$pair` and `$interval` are replaced by those of the series. */
  parameters: v.record(v.string(), v.string()),
  /** Age of the oldest rows. */
  reachHours: v.optional(v.number()),
  /** Longest time span of a request. */
  windowDays: v.optional(v.number()),
  /** Earlier rows that are requested too, because the requested rows depend on them. */
  lookBackHours: v.optional(v.number(), 0),
  /** First day whose archive objects have times in microseconds. Rows from REST then get them too. */
  microsecondsFrom: v.optional(Day),
  /** First day with rows of any series. */
  first: v.optional(Day),
  /** The route has pairs, not symbols: only the perpetual contract of a pair can be requested. */
  perpetualOnly: v.optional(v.boolean(), false),
});

/** A dataset from several routes: rows of the same time are joined. */
const Join = v.strictObject({
  joins: v.array(v.string()),
  interval: v.string(),
  /** Before this day, rows of the archive are labelled with the end of their interval, so the last row of a day is labelled with the next midnight. */
  endLabelsBefore: v.optional(Day),
});

const Offer = v.strictObject({
  cadences: v.strictObject({ daily: v.optional(spanOf(Day)), monthly: v.optional(spanOf(Month)) }),
  /** No longer in the archive. */
  removed: v.optional(v.boolean(), false),
  /** Whether published files have a header line, for descriptions. The reader checks each file. */
  header: v.picklist(['never', 'some', 'always']),
  /** Names of interval lists, for datasets with an interval in their keys. */
  intervals: v.optional(v.strictObject({ daily: v.string(), monthly: v.string() })),
  /** Columns that files of this market lack. */
  omit: v.optional(v.array(v.string()), []),
  /** Differences of columns in this market, by name. */
  columns: v.optional(v.record(v.string(), v.partial(Column)), {}),
  notes: v.optional(v.array(v.string()), []),
  /**
   * The column of ids of which the exchange leaves out none, and the columns of the first and last id of ranges that never overlap. Trades of the
   * futures markets lack ids in whole files: those of liquidations and insurance funds (upstream issues 363 and 378).
   */
  sequence: v.optional(
    v.strictObject({
      id: v.string(),
      range: v.optional(v.tuple([v.string(), v.string()])),
      /** Each range begins with the id after the end of the range before it. */
      isGapless: v.optional(v.boolean()),
    }),
  ),
  rest: v.optional(v.union([Route, Join])),
});

const Market = v.strictObject({
  path: v.string(),
  title: v.string(),
  /** The quote assets of its symbols. The longest one at the end of a symbol is the quote of the symbol. */
  quotes: v.optional(v.array(v.string())),
  /** The quote of symbols that end with another, also known quote: EUR and AEUR. */
  quoteOf: v.optional(v.record(v.string(), v.string())),
  /** Symbols that are traded all the time: they show that the market goes on when another symbol ends. */
  references: v.optional(v.array(v.string())),
  /** The asset of margins and profits, for futures. */
  settle: v.optional(v.picklist(['base', 'quote'])),
  datasets: v.record(v.string(), Offer),
});

/** A limit of our own, or a limit of the exchange: the weight allowed in each fixed window of the exchange's clock. */
const Bucket = v.union([
  v.strictObject({ permitsPerSecond: v.number(), burst: v.number() }),
  v.strictObject({ permits: v.number(), windowSeconds: v.number(), family: v.string() }),
]);

/** The entries in the footer of a Parquet file with rows of one source. */
const SourceTerms = v.strictObject({ license: v.string(), attribution: v.string() });

/** The terms of the exchange about its data, as facts with their date. */
const Terms = v.strictObject({
  /** One line for the first run into a lake. */
  summary: v.string(),
  archive: SourceTerms,
  rest: SourceTerms,
  /** Lines of the notice in the root of a lake. */
  notice: v.array(v.string()),
});

const ExchangeFacts = v.strictObject({
  name: v.string(),
  terms: v.optional(Terms),
  /** No series has an earlier object. Ranges never start before this day. */
  firstDay: Day,
  /** Start of the days, in hours after 00:00 UTC of their date; negative if before it. */
  dayStartHours: v.optional(v.number(), 0),
  /** The market if --market is not given. */
  defaultMarket: v.string(),
  /** `origin`: the same objects as `archive`, without the CDN. The others are of REST. */
  hosts: v.objectWithRest({ archive: v.string(), origin: v.string(), listing: v.string() }, v.string()),
  /** By the bucket of a request: `archive`, `listing`, and those of REST. */
  buckets: v.objectWithRest({ archive: Bucket, listing: Bucket }, Bucket),
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

const Instant = v.pipe(
  v.string(),
  v.isoTimestamp(),
  v.check((text) => text.endsWith('Z'), 'not UTC'),
);

/** A time `[from, to)` without trades in the whole market, in the datasets that record them. `source`: the address of its announcement. */
const Halt = v.pipe(
  v.strictObject({
    market: v.string(),
    from: Instant,
    to: Instant,
    source: v.pipe(v.string(), v.nonEmpty()),
    datasets: v.optional(v.array(v.string()), ['klines', 'trades', 'aggTrades']),
  }),
  v.check(({ from, to }) => Date.parse(from) < Date.parse(to), 'ends before it begins'),
);

export type RouteSpec = v.InferOutput<typeof Route>;
export type ColumnSpec = v.InferOutput<typeof Column>;
export type DatasetFacts = v.InferOutput<typeof Dataset>;
export type OfferFacts = v.InferOutput<typeof Offer>;
export type ExchangeFacts = v.InferOutput<typeof ExchangeFacts>;
export type HaltFacts = v.InferOutput<typeof Halt>;
export type RetryPreset = v.InferOutput<typeof RetryPreset>;

/** The schema of each file of `config/` with facts. `npm run docs` writes a JSON schema beside each file. */
export const FACTS = {
  'binance.json': ExchangeFacts,
  'binance-datasets.json': v.record(v.string(), Dataset),
  'halts.json': v.array(Halt),
  'retry-presets.json': v.strictObject(v.entriesFromList(PRESETS, RetryPreset)),
} as const;

/** The facts of a file, by default of the shipped one. Throws with the file and the place of the first wrong value, which is a bug of the package. */
export function readFacts<Name extends keyof typeof FACTS>(name: Name, content = readConfig(name)) {
  const schema: (typeof FACTS)[Name] = FACTS[name];
  const { success, output, issues } = v.safeParse(schema, content);
  if (success) return output;
  throw new Error(`config/${name}: ${v.getDotPath(issues[0]) ?? 'the file'}: ${issues[0].message}`);
}
