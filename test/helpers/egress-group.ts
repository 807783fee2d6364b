/** Programs in an egress group against a REST venue whose time passes: what the venue counts in each window. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { startArchive } from './archive.js';
import { cryptodlProcess, FAST } from './cli.js';
import type { CliOptions, CliResult } from './cli.js';
import { publishKlines } from './metrics-archive.js';
import { serveVenue } from './rest-venue-server.js';
import type { VenueSymbol } from './rest-venue-types.js';
import { klinesWeight, RestVenue } from './rest-venue.js';
import type { RestVenueOptions } from './rest-venue.js';

/** 133 days before the venue's time. The requests of six programs weigh more than twice 90 % of a window. */
const FIRST_DAY = '2026-07-10';
const LAST_DAY = '2026-11-20';

export interface GroupScene {
  readonly venue: RestVenue;
  /** The venue's time. */
  readonly now: () => number;
  /** The weight of the requests in each window, by number of the window. */
  readonly counted: (windowMs: number) => Map<number, number>;
  /** A program that fills the other days from REST. */
  readonly start: (run: GroupRun) => Promise<CliResult>;
  /** The flags of hosts, time and patience of each program, for other verbs. */
  readonly flags: readonly string[];
  /** Host and port of REST. */
  readonly host: string;
  readonly close: () => Promise<void>;
}

interface GroupRun extends Pick<CliOptions, 'wrap' | 'onSpawn'> {
  readonly redis: string;
  readonly group: string;
  readonly symbol: string;
  readonly flags?: readonly string[];
}

/** `from`: the venue's time at the start. The archive has only the first and the last day of each symbol. */
export async function groupScene(
  scratch: string,
  { from, ...options }: Omit<RestVenueOptions, 'now'> & { readonly from: number },
): Promise<GroupScene> {
  const begunAt = performance.now();
  const now = (): number => from + performance.now() - begunAt;
  const venue = new RestVenue({ ...options, now });
  const served = await serveVenue(venue);
  const folder = mkdtempSync(join(scratch, 'archive-'));
  const archive = await startArchive(folder);
  for (const symbol of options.symbols)
    for (const day of [FIRST_DAY, LAST_DAY]) publishKlines(folder, symbol, '1m', 60_000, Date.parse(day));
  const hosts = ['--archive-url', archive.url, '--fapi-url', served.urlOf('fapi')];
  const patience = FAST.filter((word) => !['--progress', 'none'].includes(word));
  const time = ['--now', new Date(from).toISOString()];
  const flags = [...hosts, ...time, ...patience, '--max-wait', '10m'];
  return {
    flags,
    venue,
    now,
    host: new URL(served.urlOf('fapi')).host,
    counted: (windowMs) => {
      const counts = new Map<number, number>();
      for (const { at, path, query } of venue.log) {
        const window = Math.floor(at / windowMs);
        const weight = path.endsWith('/klines') ? klinesWeight(query) : 1;
        counts.set(window, (counts.get(window) ?? 0) + weight);
      }
      return counts;
    },
    start: ({ redis, group, symbol, flags: more = [], ...how }) => {
      const own = ['--out', join(scratch, randomUUID()), '--json', '--progress', 'none'];
      return cryptodlProcess(
        ['vision', missingDaysOf([symbol]), own, flags, together(redis, group), more].flat(),
        { env: { CRYPTODL_STATE_DIR: join(scratch, randomUUID()) }, ...how },
      );
    },
    close: async () => {
      await Promise.all([served.close(), archive.close()]);
    },
  };
}

/** The flags of the days that only REST has. */
const missingDaysOf = (symbols: readonly string[]): string[] =>
  `--interval 1m --fill rest --symbols ${symbols.join(',')} --from ${FIRST_DAY}`.split(' ');
const together = (redis: string, group: string): string[] => ['--redis', redis, '--egress-group', group];

export function symbolsOf(count: number): VenueSymbol[] {
  return Array.from({ length: count }, (_, index) => ({ symbol: `S${index}USDT`, host: 'fapi' }));
}
