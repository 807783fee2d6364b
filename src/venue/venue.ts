/** The venue's facts: config/binance.json, validated when it is read. */
import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import type { Market } from '../task.js';

/** `time`: epoch ms or us, told apart by magnitude; `datetime`: UTC text; `symbol`: checked and dropped. */
const Column = v.strictObject({
  name: v.string(),
  type: v.picklist(['time', 'datetime', 'number', 'integer', 'symbol']),
  nullable: v.optional(v.boolean(), false),
  unit: v.optional(v.string()),
  doc: v.string(),
});

const DatasetSchema = v.strictObject({
  title: v.string(),
  cadences: v.pipe(v.array(v.picklist(['daily', 'monthly'])), v.minLength(1)),
  /** Present for datasets with an interval layer in their keys. */
  intervals: v.optional(v.strictObject({ daily: v.array(v.string()), monthly: v.array(v.string()) })),
  /** Seconds from row to row, where that is fixed and not told by the interval. */
  rowSeconds: v.optional(v.number()),
  /** Leading columns of the total order; the remaining columns break ties. */
  sort: v.pipe(v.array(v.string()), v.minLength(1)),
  partition: v.picklist(['day', 'month']),
  columns: v.pipe(v.array(Column), v.minLength(1)),
});

const MarketSchema = v.strictObject({
  path: v.string(),
  datasets: v.record(v.string(), DatasetSchema),
});

const Bucket = v.strictObject({ permitsPerSecond: v.number(), burst: v.number() });

const VenueSchema = v.strictObject({
  name: v.string(),
  /** Before the first object of any series: where a range that reaches further back starts. */
  firstDay: v.pipe(v.string(), v.isoDate()),
  hosts: v.strictObject({ archive: v.string(), listing: v.string() }),
  buckets: v.strictObject({ archive: Bucket, listing: Bucket }),
  markets: v.strictObject({ spot: MarketSchema, um: MarketSchema, cm: MarketSchema, option: MarketSchema }),
});

export type ColumnSpec = v.InferOutput<typeof Column>;
export type DatasetSpec = v.InferOutput<typeof DatasetSchema>;
export type Venue = v.InferOutput<typeof VenueSchema>;

const RetryPreset = v.strictObject({
  retries: v.number(),
  baseDelayMs: v.number(),
  factor: v.number(),
  maxDelayMs: v.number(),
});
const RetryPresets = v.strictObject({ vision: RetryPreset });

const CONFIG = new URL('../../config/', import.meta.url);

function readConfig(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, CONFIG), 'utf8')) as unknown;
}

/** Throws when the shipped file does not fit its schema: a bug of the package, not of the user. */
export function loadVenue(): Venue {
  return v.parse(VenueSchema, readConfig('binance.json'));
}

export function loadRetryPresets(): v.InferOutput<typeof RetryPresets> {
  return v.parse(RetryPresets, readConfig('retry-presets.json'));
}

export const MARKETS: readonly Market[] = ['spot', 'um', 'cm', 'option'];

/** Undefined when the market has no such dataset. */
export function findDataset(venue: Venue, market: Market, dataset: string): DatasetSpec | undefined {
  const datasets = venue.markets[market].datasets;
  return Object.hasOwn(datasets, dataset) ? datasets[dataset] : undefined;
}

const INTERVAL_UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Seconds from row to row; undefined when the number of rows of a period is not fixed (`3d`, `1w`, `1mo`). */
export function rowSeconds(spec: DatasetSpec, interval: string | undefined): number | undefined {
  if (spec.rowSeconds !== undefined) return spec.rowSeconds;
  const match = /^(\d+)([smhd])$/.exec(interval ?? '');
  const seconds = Number(match?.[1]) * (INTERVAL_UNIT_SECONDS[match?.[2] ?? ''] ?? Number.NaN);
  return seconds <= 86_400 ? seconds : undefined;
}
