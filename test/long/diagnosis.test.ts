/** What a run says about its own speed: waits, refusals, retries, and the flag to change. */
import names from 'node:dns';
import type { IncomingMessage, ServerResponse } from 'node:http';
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
/** The archive under a name that is looked up. */
const named = (): string => scene.archive.url.replace('127.0.0.1', 'localhost');

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

/** Every look-up of a name takes this long. */
function delayLookups(ms: number): void {
  const delayed = (...question: Parameters<typeof lookup>): void => {
    scene.after(ms, () => {
      lookup(...question);
    });
  };
  replaceLookup(delayed as typeof lookup);
}

function replaceLookup(by: typeof lookup): void {
  names.lookup = by;
  syncBuiltinESMExports();
}

describe('the figures of the network', () => {
  it.each(['--pool-limit', '--pool-limit-per-host'])('has the requests that wait for %s', async (flag) => {
    const held = holdZips(11_000);
    const result = await scene.vision(`--concurrency 8 ${flag} 2`);
    const first = result.events.find(({ event }) => event === 'network') as unknown as Network;
    expect([result.code, held.length, first.pool.queued]).toEqual([0, 2, 6]);
    expect(networkOf(result).pool.queued).toBe(0);
  });

  it('has the look-ups of names', async () => {
    delayLookups(300);
    const result = await scene.vision('--concurrency 8', { url: named() });
    const { dns } = networkOf(result);
    expect([result.code, dns.misses, dns.failures]).toEqual([0, 1, 0]);
    expect(dns.lookups).toBe(dns.hits + dns.misses);
    expect(dns.hits).toBeGreaterThan(0);
    expect(dns.ms).toBeGreaterThanOrEqual(290);
  });
});

/** Requests of zips wait until they are released together after `ms`; later ones are served at once. */
function holdZips(ms: number): readonly unknown[] {
  const requests: [IncomingMessage, ServerResponse][] = [];
  scene.answer(isZip, (request, response) => requests.push([request, response]));
  scene.after(ms, () => {
    scene.archive.fault = undefined;
    for (const [request, response] of requests) scene.archive.serve(request, response);
  });
  return requests;
}

/** The lines of the closing block that tell what held the run up, and warnings. */
const told = ({ stderr }: CliResult): string[] =>
  stderr.match(/^( {2}(waited|refused|retries|names|bottleneck) |warning: ).*$/gm) ?? [];

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
  it('is at most that of auto:N', async () => {
    const result = await scene.vision('--concurrency auto:3');
    expect([result.code, levelsOf(result), networkOf(result).concurrency]).toEqual([0, [], 3]);
  });

  it('falls when bodies are damaged', async () => {
    scene.answer(isZip, (_, response) => response.end('no zip'));
    const result = await scene.vision('--breaker-failures 999');
    expect([result.code, levelsOf(result)[0]]).toEqual([3, expect.objectContaining({ why: 'troubled' })]);
  });

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

  it('leaves the place of an object that waits for the retry budget to another one', async () => {
    const objects = new Set<string>();
    scene.answer(isZip, (request, response, path) => {
      objects.add(path);
      if (objects.size <= 16 && !seen.has(path)) request.destroy();
      else
        scene.after(3000, () => {
          scene.archive.fault = undefined;
          atOnce ??= objects.size;
          scene.archive.serve(request, response);
        });
      seen.add(path);
    });
    const seen = new Set<string>();
    let atOnce: number | undefined;
    const result = await scene.vision('--concurrency auto:16 --breaker-failures 999 --retries 50');
    // Five are retried at once. Two that wait make room for one.
    expect([result.code, atOnce]).toEqual([0, 16 + 5]);
  });
});

const REFUSED = [
  expect.stringMatching(/^ {2}waited {5}for permits: /),
  expect.stringMatching(/^ {2}refused {4}\d+ times? by a limit of the host \(429, 418\), [\d,]+ per hour$/),
  expect.stringMatching(/^ {2}bottleneck refusals by a limit of the host .* a longer --request-interval, /),
];

describe('the closing block', () => {
  it('has no line about delays when there were none', async () => {
    const result = await scene.vision();
    expect([result.code, told(result)]).toEqual([0, []]);
  });

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

  it('counts no pause of the whole run as a part of its work', async () => {
    const result = await scene.vision('--days 14 --jitter 1h --request-interval 1s');
    const line = expect.stringMatching(/^ {2}bottleneck your limit for archive, (9\d|100) % of the run: /);
    expect([result.code, told(result)]).toEqual([0, expect.arrayContaining([line])]);
  });

  it('has the level of concurrency at the end; each change of it is an event with its reason', async () => {
    // Of the first thirty, four are served. The rest of the run is too short to try a higher level again.
    refuseThenServe(26, 100);
    const result = await scene.vision('--breaker-failures 999 --retries 50');
    const { code, summary, stderr } = result;
    const levels = levelsOf(result);
    expect([code, levels[0]]).toEqual([0, expect.objectContaining({ from: 30, to: 21, why: 'refused' })]);
    const network = summary['network'] as { concurrency: number; settled?: unknown };
    expect(network.settled).toEqual({ level: network.concurrency, most: 128, why: 'refused' });
    const line = /^ {2}settled {4}at \d+ objects in flight, of 128 at most: the host refused more$/m;
    expect(stderr).toMatch(line);
  });
});
