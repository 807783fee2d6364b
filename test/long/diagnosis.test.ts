/** What a run says about its own speed: waits, refusals, retries, and the flag to change. */
import names from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, describe, expect, it } from 'vitest';
import type { CliResult } from '../helpers/cli.js';
import { isListing, isZip, useScene } from '../helpers/scene.js';

/** Thirty objects without their sidecars, unless `--days` says another number. */
const scene = useScene({
  archive: [{ from: '2026-10-22', to: '2026-11-20' }],
  venue: { symbols: [{ symbol: 'BTCUSDT', host: 'fapi', fundingHours: 8 }] },
  flags: '--interval 1h --symbols BTCUSDT --verify none --days 30 --json',
  isTimeVirtual: true,
});

interface Network {
  readonly concurrency: number;
  readonly pool: { readonly queued: number };
  readonly dns: Readonly<Record<'lookups' | 'hits' | 'misses' | 'failures' | 'ms', number>>;
  readonly limiter: { readonly refusals: number; readonly refusalsPerHour: number };
}

const networkOf = ({ events }: CliResult): Network => events.at(-1)?.['network'] as Network;

const { lookup } = names;
afterEach(() => {
  replaceLookup(lookup);
});

function replaceLookup(by: typeof lookup): void {
  names.lookup = by;
  syncBuiltinESMExports();
}

/** The lines of the closing block that tell what held the run up, and warnings. */
const told = ({ stderr }: CliResult): string[] =>
  stderr.match(/^( {2}(refused|bottleneck) |warning: ).*$/gm) ?? [];

/** Serves `burst` zips at once, then one in each `everyMs`; refuses the others with 429. */
function limitZips(burst: number, everyMs: number): { refill(): void; stop(): void } {
  let left = burst;
  let isOver = false;
  const gain = (): void => {
    left = Math.min(burst, left + 1);
    if (!isOver) scene.after(everyMs, gain);
  };
  gain();
  scene.archive.fault = (path, _, response) => {
    if (!isZip(path)) return false;
    left -= 1;
    if (left >= 0) return false;
    left = 0;
    response.writeHead(429, { 'retry-after': '2' }).end();
    return true;
  };
  return { refill: () => (left = burst), stop: () => (isOver = true) };
}

/** Refuses the first so many requests of zips with 503, and serves the others after `ms`. */
function refuseThenServe(refusals: number, ms: number): void {
  let left = refusals;
  scene.answer(isZip, (request, response) => {
    left -= 1;
    if (left >= 0) response.writeHead(503).end();
    else
      scene.after(ms, () => {
        scene.archive.serve(request, response);
      });
  });
}

/** The changes of the level of concurrency, as events. */
const levelsOf = ({ events }: CliResult): readonly Readonly<Record<string, unknown>>[] =>
  events.filter(({ event }) => event === 'concurrency');

describe('the level of concurrency', () => {
  it('is not that of the listing or of REST', async () => {
    let refusals = 0;
    const refuse = (): boolean => (refusals += 1) <= 5;
    scene.archive.fault = (path, _, response) => {
      if (!isListing(path) || !refuse()) return false;
      response.writeHead(503).end();
      return true;
    };
    const result = await scene.vision('--days 14 --breaker-failures 999 --retries 50');
    expect([result.code, refusals > 5, levelsOf(result)]).toEqual([0, true, []]);
  });
});

const REFUSED = [
  expect.stringMatching(/^ {2}refused {4}\d+ times? by a limit of the host \(429, 418\), [\d,]+ per hour$/),
  expect.stringMatching(/^ {2}bottleneck refusals by a limit of the host .* a longer --request-interval, /),
];

describe('the closing block', () => {
  it('has the refusals and their number per hour; with the flag that it names there are none', async () => {
    const limit = limitZips(10, 300);
    const result = await scene.vision('--days 14');
    const { refusals, refusalsPerHour } = networkOf(result).limiter;
    expect(refusals).toBeGreaterThan(0);
    expect(refusalsPerHour).toBeGreaterThan(refusals);
    expect([result.code, told(result)]).toEqual([0, REFUSED]);
    limit.refill();
    const slower = await scene.vision('--days 14 --request-interval 400ms');
    limit.stop();
    expect([slower.code, networkOf(slower).limiter.refusals]).toEqual([0, 0]);
  });

  it('has the level of concurrency at the end; each change of it is an event with its reason', async () => {
    // Of the first thirty, four are served. The rest of the run is too short to try a higher level again.
    refuseThenServe(26, 100);
    const result = await scene.vision('--breaker-failures 999 --retries 50');
    const { code, summary } = result;
    const levels = levelsOf(result);
    expect([code, levels[0]]).toEqual([0, expect.objectContaining({ from: 30, to: 21, why: 'refused' })]);
    const network = summary['network'] as { concurrency: number; settled?: unknown };
    expect(network.settled).toEqual({ level: network.concurrency, most: 128, why: 'refused' });
  });
});
