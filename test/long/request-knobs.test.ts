/** The flags of the request stack, each as a server sees it: how many requests, how far apart, over how many sockets. */
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/model/clock.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { isListing, useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

/** Runs of objects without their sidecars. */
const scene = useScene({
  archive: [{ from: '2026-10-22', to: '2026-11-20' }],
  venue: { symbols: [{ symbol: 'BTCUSDT', host: 'fapi', fundingHours: 8 }] },
  flags: '--interval 1h --symbols BTCUSDT --verify none',
  isTimeVirtual: true,
});
/** A request may take this much longer to the server than the next one. */
const EARLY_MS = 20;

/** Times and sockets of the requests of objects in the last run, in order of arrival. */
const arrivals: { readonly at: number; readonly socket: Socket }[] = [];

/** The statuses are those of the first requests of objects; the others are served. */
function run(flags: string, statuses: readonly (200 | 503)[] = []): Promise<SceneRun> {
  arrivals.length = 0;
  scene.archive.fault = (path, request, response) => {
    if (isListing(path)) return false;
    arrivals.push({ at: scene.clock.monotonic(), socket: request.socket });
    if ((statuses[arrivals.length - 1] ?? 200) === 200) return false;
    response.writeHead(503).end();
    return true;
  };
  return scene.vision(flags);
}

/** Milliseconds between the requests. */
function gaps(): number[] {
  return arrivals.slice(1).map(({ at }, index) => at - (arrivals[index]?.at ?? 0));
}

describe('the back-off', () => {
  /** The random number of the scene is always a half. */
  it('has the delays of its flags', async () => {
    const flags = '--retry-delay 1s --retry-factor 3 --retry-max-delay 1m --retry-strategy full';
    const result = await run(`--days 1 --retries 2 ${flags}`, [503, 503]);
    expect([result.code, arrivals.length]).toEqual([0, 3]);
    for (const [at, gap] of gaps().entries())
      expect(Math.abs(gap - (at === 0 ? 500 : 1500))).toBeLessThanOrEqual(3 * EARLY_MS);
  });
});

describe('the breaker', () => {
  const BREAKER = '--days 12 --concurrency 1 --retries 0 --max-wait 1m';

  it('closes after --breaker-successes successes in a row: a failure before opens it again', async () => {
    const failures = [503, 503, 503, 503, 503] as const;
    const counts = '--breaker-successes 5 --breaker-open 900ms';
    const result = await run(`${BREAKER} ${counts}`, [...failures, 200, 200, 200, 200, 503]);
    expect([result.code, arrivals.length]).toEqual([0, 12 + 6]);
    expect(gaps()[4]).toBeGreaterThanOrEqual(900 - EARLY_MS);
    expect(gaps()[9]).toBeGreaterThanOrEqual(900 - EARLY_MS);
  });
});

/** A run of six objects at once, or of as many as come within a minute. */
const SIX = '--days 6 --concurrency 8 --max-duration 50s';

describe('the pace of a bucket', () => {
  it('has --request-interval between two requests', async () => {
    const result = await run('--days 6 --concurrency 8 --request-interval 400ms');
    expect([result.code, arrivals.length]).toEqual([0, 6]);
    // The way to the server takes one request longer than another one.
    for (const gap of gaps()) expect(gap).toBeGreaterThanOrEqual(200);
    expect((arrivals.at(-1)?.at ?? 0) - (arrivals[0]?.at ?? 0)).toBeGreaterThanOrEqual(1800);
  });

  it('has no more than --requests-per-minute in a minute', async () => {
    const result = await run(`${SIX} --requests-per-minute 4`);
    expect([result.code, arrivals.length]).toEqual([3, 4]);
  });

  it('is at most that of --limits', async () => {
    const result = await run(`${SIX} --limits archive=3/m,listing=10/m`);
    expect([result.code, arrivals.length]).toEqual([3, 3]);
  });
});

describe('--concurrency', () => {
  const FUNDING = '--symbols BTCUSDT --dataset fundingRate --days 1 --json';

  it.each([
    ['metrics', '--concurrency 20', 20, false],
    ['metrics', '--concurrency 21', 21, true],
    ['metrics --join archive', '--join archive --concurrency 21', 21, false],
    ['metrics', '', 10, false],
    ['metrics --join archive', '--join archive', 10, false],
  ])('of %s %s is %i objects; a warning: %s', async (_verb, flags, objects, isWarned) => {
    const { code, summary, stderr } = await scene.metrics(`${FUNDING} ${flags}`, { sceneFlags: [] });
    expect([code, summary['network']]).toEqual([0, expect.objectContaining({ concurrency: objects })]);
    expect(stderr.includes('more than 20 objects in flight are not faster')).toBe(isWarned);
  });
});

describe('sockets', () => {
  interface Seen {
    readonly all: Set<Socket>;
    /** The most that were open at once. */
    most: number;
  }

  /** The archive, and the others, serve each request after so long. The result counts the sockets that were open meanwhile. */
  function slow(delayMs: number, others: readonly TestArchive[] = [], clock = scene.clock): Seen {
    const seen: Seen = { most: 0, all: new Set<Socket>() };
    for (const served of [scene.archive, ...others]) {
      served.fault = (_, request, response) => {
        seen.all.add(request.socket);
        // By then the server knows which sockets were closed before this request was sent.
        const count = (): void => {
          const open = [...seen.all].filter(({ readable }) => readable);
          seen.most = Math.max(seen.most, open.length);
          served.serve(request, response);
        };
        clock.timer(delayMs, count);
        return true;
      };
    }
    return seen;
  }

  const MANY = '--days 12 --concurrency 12';

  it('of one host are at most --pool-limit-per-host; requests that wait for one use up no timeout', async () => {
    const seen = slow(200);
    const result = await scene.vision(`${MANY} --pool-limit-per-host 2 --total-timeout 1s --retries 0`);
    expect([result.code, scene.archive.objectRequests().length]).toEqual([0, 12]);
    expect(seen.most).toBe(2);
  });

  it.each([1, 2])('of all hosts together are at most --pool-limit %i', async (limit) => {
    const listing = await startArchive(scene.folder);
    const seen = slow(200, [listing]);
    const flags = `--listing-url ${listing.url} --pool-limit ${limit} --total-timeout 1s --retries 0`;
    const result = await scene.vision(`${MANY} ${flags}`);
    const asked = [listing.requests.length > 0, scene.archive.objectRequests().length];
    await listing.close();
    expect([result.code, ...asked]).toEqual([0, true, 12]);
    expect(seen.most).toBe(limit);
  });

  it.each([
    ['are kept by default while they are idle', '', 1, 1],
    ['are closed when they were idle for --keep-alive', ' --keep-alive 100ms', 3, Number.POSITIVE_INFINITY],
  ])('%s', async (_, flags, least, most) => {
    const seen = slow(0, [], systemClock);
    const slowly = '--days 3 --concurrency 1 --request-interval 700ms';
    expect((await scene.vision(slowly + flags, { clock: undefined })).code).toBe(0);
    expect(scene.archive.objectRequests()).toHaveLength(3);
    expect(seen.all.size).toBeGreaterThanOrEqual(least);
    expect(seen.all.size).toBeLessThanOrEqual(most);
  });
});
