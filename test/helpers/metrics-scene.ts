/** A lake, a REST venue beside it whose clock stands still, and the rows that should be in the one as in the other. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { cryptodl, FAST } from './cli.js';
import type { CliOptions, CliResult } from './cli.js';
import { filesBelow, readParquet } from './lake.js';
import { fundingEvents, statistic } from './rest-venue-rows.js';
import { serveVenue } from './rest-venue-server.js';
import type { ServedVenue } from './rest-venue-server.js';
import { DAY_MS } from './rest-venue-types.js';
import type { VenueSymbol } from './rest-venue-types.js';
import { RestVenue } from './rest-venue.js';
import type { RestVenueOptions } from './rest-venue.js';

export const NOW = '2026-11-21T08:00:00.000Z';
/** Nobody listens there: an archive that cannot be reached. */
const NOWHERE = 'http://127.0.0.1:9';

export interface MetricsScene {
  readonly venue: RestVenue;
  readonly lake: string;
  /** What "now" is, for the venue and for the program. */
  readonly setNow: (iso: string) => void;
  /** Rest of the line after `cryptodl`; where things are is added. */
  readonly run: (args: readonly string[], options?: CliOptions) => Promise<CliResult>;
  readonly close: () => Promise<void>;
}

export type SceneOptions = Omit<RestVenueOptions, 'now'> & {
  /** An archive beside it. */
  readonly archiveUrl?: string;
};

export async function metricsScene(scratch: string, options: SceneOptions): Promise<MetricsScene> {
  let now = Date.parse(NOW);
  const lake = join(scratch, randomUUID());
  const venue = new RestVenue({ ...options, now: () => now });
  const served: ServedVenue = await serveVenue(venue);
  const archive = options.archiveUrl ?? NOWHERE;
  return {
    venue,
    lake,
    setNow: (iso) => {
      now = Date.parse(iso);
    },
    run: (args, more) => {
      const places = ['--out', lake, '--now', new Date(now).toISOString(), '--archive-url', archive];
      const hosts = (['fapi', 'dapi', 'spot'] as const).flatMap((host) => [
        `--${host}-url`,
        served.urlOf(host),
      ]);
      return cryptodl([...args, ...places, ...hosts, ...FAST], more);
    },
    close: () => served.close(),
  };
}

/** Days `[from, to)` as epoch milliseconds. */
export function daysBetween(from: string, to: string): number[] {
  const days: number[] = [];
  for (let day = Date.parse(from); day < Date.parse(to); day += DAY_MS) days.push(day);
  return days;
}

/** All rows of a series' Parquet files, in file order. */
export async function rowsOf(lake: string, series: string): Promise<Record<string, unknown>[]> {
  const folder = join(lake, 'binance', series);
  const files = filesBelow(folder, '.parquet');
  return (await Promise.all(files.map((file) => readParquet(join(folder, file))))).flat();
}

/** What the venue has of a statistic at 5 minutes: time and one field, as numbers. */
export function statisticsOf(
  dataset: string,
  field: string,
  symbol: VenueSymbol,
  days: readonly number[],
  stepMs = 300_000,
): [number, number][] {
  return days.flatMap((day) =>
    Array.from({ length: DAY_MS / stepMs }, (_, index): [number, number] => {
      const at = day + index * stepMs;
      return [at, Number(statistic(dataset, symbol, at)[field])];
    }),
  );
}

export function fundingOf(symbol: VenueSymbol, days: readonly number[]): [number, number][] {
  return days.flatMap((day) =>
    fundingEvents(symbol, day, day + DAY_MS - 1).map(({ fundingTime, fundingRate }): [number, number] => [
      fundingTime,
      Number(fundingRate),
    ]),
  );
}
