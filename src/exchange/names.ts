/**
 * Names and limits of Binance for the command line. config/ is read without validation here, because validation takes longer than
 * everything else in `--help`. A command that uses the facts validates them (facts.ts).
 */
import { readFileSync } from 'node:fs';
import { packageFile } from '../files/package-file.js';
import type { Cadence, Market } from '../model/task.js';

/** Selects every market, dataset or interval. */
export const ALL = 'all' as const;

export const MARKETS = ['spot', 'um', 'cm', 'option'] as const;

/** Names of the markets in other tools and in the documentation of Binance. */
export const MARKET_ALIASES = {
  um: [
    'futures',
    'future',
    'um-futures',
    'futures/um',
    'usdm',
    'usds-m',
    'usdt-m',
    'usdⓢ-m',
    'perp',
    'perps',
    'perpetual',
    'swap',
    'linear',
    'fapi',
  ],
  cm: ['cm-futures', 'futures/cm', 'coinm', 'inverse', 'dapi'],
  option: ['options'],
} as const satisfies Readonly<Partial<Record<(typeof MARKETS)[number], readonly string[]>>>;

export type MarketAlias = (typeof MARKET_ALIASES)[keyof typeof MARKET_ALIASES][number];

/** The strategies of http/retry/. */
export const STRATEGIES = ['fixed', 'linear', 'exponential', 'full'] as const;
export const PRESETS = ['vision', 'metrics', 'realtime', 'history', 'supplementary'] as const;

export interface BucketLimit {
  readonly permits: number;
  readonly windowMs: number;
  /** The server counts in windows of its own clock, so the length of the window cannot be changed. */
  readonly isWindow: boolean;
}

type PresetWords = Readonly<Record<(typeof PRESETS)[number], { retries: number; baseDelayMs: number }>>;

export function readConfig(name: string): unknown {
  return JSON.parse(readFileSync(packageFile(`config/${name}`), 'utf8')) as unknown;
}

/** Hosts, limits by bucket, and the datasets and intervals of all markets, each once. */
export function readExchangeWords() {
  const { hosts, buckets, defaultMarket, intervals, markets } = readConfig('binance.json') as {
    hosts: Record<'archive' | 'origin' | 'listing' | 'fapi' | 'dapi' | 'spot' | 'spotPublic', string>;
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

/** The datasets with their names in other tools. */
export function readDatasetWords() {
  const specs = readConfig('binance-datasets.json') as Record<string, { aliases?: readonly string[] }>;
  return Object.entries(specs).map(([name, { aliases = [] }]) => ({ name, aliases }));
}

export const readPresetWords = (): PresetWords => readConfig('retry-presets.json') as PresetWords;
