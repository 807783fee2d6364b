/** The flags of the request stack, each as a server sees it: how many requests, how far apart, over how many sockets. */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
/** A timer may fire this much before its time by the clock of another process. */
const EARLY_MS = 20;

interface Arrival {
  readonly path: string;
  readonly at: number;
  readonly socket: Socket;
}

let archive: TestArchive;
/** Requests of objects, in order of arrival. */
let arrivals: Arrival[] = [];

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-10-22',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());
afterEach(() => {
  archive.fault = undefined;
  archive.requests.length = 0;
});

/** Objects without their sidecars; the statuses are those of the first requests of objects, the rest is served. */
async function run(
  flags: readonly string[],
  statuses: readonly (200 | 503)[] = [],
  options: CliOptions = {},
): Promise<CliResult> {
  arrivals = [];
  archive.fault = (path, request, response) => {
    if (path.includes('prefix=')) return false;
    arrivals.push({ path, at: performance.now(), socket: request.socket });
    if ((statuses[arrivals.length - 1] ?? 200) === 200) return false;
    response.writeHead(503).end();
    return true;
  };
  const what = [
    '--interval',
    '1h',
    '--symbols',
    'BTCUSDT',
    '--now',
    '2026-11-21T12:00:00Z',
    '--verify',
    'none',
  ];
  const where = ['--out', join(scratch, randomUUID()), '--archive-url', archive.url];
  return cryptodl(['vision', ...what, ...where, ...FAST, ...flags], options);
}

/** Milliseconds between the requests. */
function gaps(): number[] {
  return arrivals.slice(1).map(({ at }, index) => at - (arrivals[index]?.at ?? 0));
}

describe('the back-off', () => {
  const EXPONENTIAL = ['--days', '1', '--retries', '2', '--retry-strategy', 'exponential'];

  it('grows by --retry-factor', async () => {
    const result = await run([...EXPONENTIAL, '--retry-delay', '50ms', '--retry-factor', '20'], [503, 503]);
    expect([result.code, arrivals.length]).toEqual([0, 3]);
    expect(gaps()[0]).toBeGreaterThanOrEqual(50 - EARLY_MS);
    expect(gaps()[1]).toBeGreaterThanOrEqual(1000 - EARLY_MS);
  });

  it('may be longer than its preset has it, with --retry-max-delay', async () => {
    const result = await run([...EXPONENTIAL, '--retry-delay', '2800ms', '--retry-max-delay', '1h'], [503]);
    expect([result.code, arrivals.length]).toEqual([0, 2]);
    expect(gaps()[0]).toBeGreaterThanOrEqual(2800 - EARLY_MS);
  });

  it('is never longer than --retry-max-delay', async () => {
    const delays = ['--retry-preset', 'metrics', '--retry-delay', '10m', '--retry-max-delay', '10ms'];
    const result = await run([...EXPONENTIAL, ...delays], [503, 503]);
    // The cap of the preset is a minute: the test would be over before.
    expect([result.code, arrivals.length]).toEqual([0, 3]);
  }, 50_000);
});

describe('the breaker', () => {
  const BREAKER = ['--days', '12', '--concurrency', '1', '--retries', '0', '--max-wait', '1m'];

  it('opens after --breaker-failures failures in a row', async () => {
    const counts = ['--breaker-failures', '2', '--breaker-open', '900ms'];
    const result = await run([...BREAKER, ...counts], [200, 503, 200, 503, 503]);
    expect([result.code, arrivals.length]).toEqual([0, 12 + 3]);
    expect(gaps()[4]).toBeGreaterThanOrEqual(900 - EARLY_MS);
  });

  it('closes after --breaker-successes successes in a row: a failure before opens it again', async () => {
    const failures = [503, 503, 503, 503, 503] as const;
    const counts = ['--breaker-successes', '5', '--breaker-open', '900ms'];
    const result = await run([...BREAKER, ...counts], [...failures, 200, 200, 200, 200, 503]);
    expect([result.code, arrivals.length]).toEqual([0, 12 + 6]);
    expect(gaps()[4]).toBeGreaterThanOrEqual(900 - EARLY_MS);
    expect(gaps()[9]).toBeGreaterThanOrEqual(900 - EARLY_MS);
  });

  it('closes after three successes when nothing is said', async () => {
    const result = await run(
      [...BREAKER, '--breaker-open', '900ms', '--json'],
      [503, 503, 503, 503, 503, 200, 200, 503],
    );
    expect([result.code, arrivals.length]).toEqual([0, 12 + 6]);
    expect(gaps()[7]).toBeGreaterThanOrEqual(900 - EARLY_MS);
    const states = result.events.filter(({ event }) => event === 'breaker').map(({ state }) => state);
    expect(states).toEqual(['open', 'half-open', 'open', 'half-open', 'closed']);
  });
});
