/**
 * Names and limits of Binance for the command line. config/ is read without validation here, because validation takes longer than
 * everything else in `--help`. A command that uses the facts validates them (facts.ts).
 */
import { readFileSync } from 'node:fs';
import type { Cadence, Market } from '../model/task.js';

/** Selects every market, dataset or interval. */
export const ALL = 'all' as const;

/** The markets of Binance. */
export const MARKETS = ['spot', 'um', 'cm', 'option'] as const;

/** Names of the markets in other tools and in the documentation of Binance, in lower case. */
const ALIASES = {
  futures: 'um',
  future: 'um',
  'um-futures': 'um',
  'futures/um': 'um',
  usdm: 'um',
  'usd-m': 'um',
  'usds-m': 'um',
  'usdt-m': 'um',
  'usdⓢ-m': 'um',
  perp: 'um',
  perps: 'um',
  perpetual: 'um',
  swap: 'um',
  linear: 'um',
  fapi: 'um',
  'cm-futures': 'cm',
  'futures/cm': 'cm',
  coinm: 'cm',
  'coin-m': 'cm',
  inverse: 'cm',
  dapi: 'cm',
  options: 'option',
} as const satisfies Readonly<Record<string, (typeof MARKETS)[number]>>;

/** A market by its name in other tools. */
export type MarketAlias = keyof typeof ALIASES;
export const MARKET_ALIASES: Readonly<Record<string, string>> = ALIASES;

/** The strategies of http/retry/. */
export const STRATEGIES = ['fixed', 'linear', 'exponential', 'full', 'equal', 'decorrelated'] as const;
export const PRESETS = ['vision', 'metrics', 'realtime', 'history', 'supplementary'] as const;

interface VenueWords {
  readonly defaultMarket: Market;
  readonly hosts: Readonly<
    Record<'archive' | 'origin' | 'listing' | 'fapi' | 'dapi' | 'spot' | 'spotPublic', string>
  >;
  readonly datasets: readonly string[];
  readonly intervals: readonly string[];
  /** Permits per window, by bucket. */
  readonly limits: Readonly<Record<string, BucketLimit>>;
}

export interface BucketLimit {
  readonly permits: number;
  readonly windowMs: number;
  /** The server counts in windows of its own clock, so the length of the window cannot be changed. */
  readonly isWindow: boolean;
}

type PresetWords = Readonly<Record<(typeof PRESETS)[number], { retries: number; baseDelayMs: number }>>;

const CONFIG = new URL('../../config/', import.meta.url);

export function readConfig(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, CONFIG), 'utf8')) as unknown;
}

/** Hosts and limits, and the datasets and intervals of all markets, each once. */
export function readVenueWords(): VenueWords {
  const { hosts, buckets, defaultMarket, intervals, markets } = readConfig('binance.json') as {
    hosts: VenueWords['hosts'];
    defaultMarket: Market;
    buckets: Record<string, { permitsPerSecond: number } | { permits: number; windowSeconds: number }>;
    intervals: Record<string, string[]>;
    markets: Record<Market, { datasets: Record<string, { intervals?: Record<Cadence, string> }> }>;
  };
  const offers = Object.values(markets).flatMap(({ datasets }) => Object.entries(datasets));
  const lists = offers.flatMap(([, offer]) => Object.values(offer.intervals ?? {}));
  const limits = Object.entries(buckets).map(([name, bucket]): [string, BucketLimit] => [
    name,
    'permits' in bucket
      ? { permits: bucket.permits, windowMs: bucket.windowSeconds * 1000, isWindow: true }
      : { permits: bucket.permitsPerSecond, windowMs: 1000, isWindow: false },
  ]);
  return {
    defaultMarket,
    hosts,
    limits: Object.fromEntries(limits),
    datasets: [...new Set(offers.map(([name]) => name))],
    intervals: [...new Set(lists.flatMap((list) => intervals[list] ?? []))],
  };
}

export function readPresetWords(): PresetWords {
  return readConfig('retry-presets.json') as PresetWords;
}
