/** A lake, a REST venue beside it with a clock of its own, and the rows that should be in the one as in the other. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { startArchive } from './archive.js';
import type { TestArchive } from './archive.js';
import { cryptodl, FAST } from './cli.js';
import type { CliOptions, CliResult } from './cli.js';
import type { IdleClock } from './idle-clock.js';
import { filesBelow, readParquet } from './lake.js';
import { statistic } from './rest-venue-rows.js';
import { serveVenue } from './rest-venue-server.js';
import type { ServedVenue } from './rest-venue-server.js';
import { DAY_MS } from './rest-venue-types.js';
import type { VenueSymbol } from './rest-venue-types.js';
import { RestVenue } from './rest-venue.js';
import type { RestVenueOptions } from './rest-venue.js';

export const NOW = '2026-11-21T08:00:00.000Z';
/** A port without a server: an archive that cannot be reached. */
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
  /** The venue's time passes like ours, from where it was set; otherwise it stands still. */
  readonly isTicking?: boolean;
  /** The time of the program, and of a venue whose time passes. */
  readonly clock?: IdleClock;
  /** An archive beside it. */
  readonly archiveUrl?: string;
};

export async function metricsScene(scratch: string, options: SceneOptions): Promise<MetricsScene> {
  const ours = (): number => options.clock?.now() ?? Date.now();
  let set = { to: Date.parse(NOW), at: ours() };
  const now = (): number => set.to + (options.isTicking === true ? ours() - set.at : 0);
  const lake = join(scratch, randomUUID());
  const venue = new RestVenue({ ...options, now });
  const served: ServedVenue = await serveVenue(venue);
  const archive = options.archiveUrl ?? NOWHERE;
  return {
    venue,
    lake,
    setNow: (iso) => {
      set = { to: Date.parse(iso), at: ours() };
    },
    run: ([verb = '', ...flags], more) => {
      const places = ['--out', lake, '--now', new Date(now()).toISOString(), '--archive-url', archive];
      const hosts = (['fapi', 'dapi', 'spot'] as const).flatMap((host) => [
        `--${host}-url`,
        served.urlOf(host),
      ]);
      // An audit has no --progress.
      const fast = verb === 'audit' ? FAST.slice(0, -2) : FAST;
      // What a test says itself comes last, and counts.
      return cryptodl([verb, ...places, ...hosts, ...fast, ...flags], { clock: options.clock, ...more });
    },
    close: () => served.close(),
  };
}

export interface JoinedScene extends MetricsScene {
  /** What the archive serves. */
  readonly folder: string;
  readonly archive: TestArchive;
}

/** With an archive beside the venue. */
export async function joinedScene(scratch: string, options: SceneOptions): Promise<JoinedScene> {
  const folder = mkdtempSync(join(scratch, 'archive-'));
  const archive = await startArchive(folder);
  const scene = await metricsScene(scratch, { ...options, archiveUrl: archive.url });
  const close = async (): Promise<void> => {
    await Promise.all([archive.close(), scene.close()]);
  };
  return { ...scene, folder, archive, close };
}

/** Closes a scene at the end of the test. */
export async function closing<T extends MetricsScene>(opened: Promise<T>): Promise<T> {
  const scene = await opened;
  onTestFinished(scene.close);
  return scene;
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
