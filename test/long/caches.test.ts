/** What hosts said last stands in when they do not answer: the listing's pages and exchangeInfo, never silently. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { closing, joinedScene, metricsScene } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';
import { publishMetrics } from '../helpers/metrics-archive.js';
import { json, restricted, serverError } from '../helpers/rest-venue-answers.js';
import type { Asked, VenueAnswer } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();

describe('the listing', () => {
  const folder = join(scratch, 'archive');
  const BTC = {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    cadence: 'daily',
    symbols: ['BTCUSDT'],
  } as const;
  const GONE = { ...BTC, symbols: ['GONEUSDT'], from: '2026-09-01', to: '2026-09-10' } as const;
  const THEN = '2026-11-21T12:00:00Z';
  const LATER = '2026-12-20T12:00:00Z';
  let archive: TestArchive;
  let listing: TestArchive;

  beforeAll(async () => {
    makeArchive(folder, { ...BTC, from: '2026-10-25', to: '2026-11-20' });
    makeArchive(folder, GONE);
    archive = await startArchive(folder);
    listing = await startArchive(folder);
  });
  afterAll(() => Promise.all([archive.close(), listing.close()]));
  afterEach(() => {
    listing.fault = undefined;
    for (const server of [archive, listing]) server.requests.length = 0;
  });

  interface Place {
    readonly state: string;
    readonly run: (now: string, ...flags: string[]) => Promise<CliResult>;
  }

  /** A state folder and a lake of its own. */
  function place(symbols = 'BTCUSDT,GONEUSDT'): Place {
    const root = join(scratch, randomUUID());
    const where = ['--archive-url', archive.url, '--listing-url', listing.url, '--out', join(root, 'lake')];
    const what = ['--symbols', symbols, '--interval', '1h', '--days', '3'];
    const state = join(root, 'state');
    const args = [...where, ...what, '--state-dir', state, ...FAST];
    return { state, run: (now, ...flags) => cryptodl(['vision', ...args, '--now', now, ...flags]) };
  }
  const answerAll = (answer: (request: IncomingMessage, response: ServerResponse) => void): void => {
    listing.fault = (_, request, response) => {
      answer(request, response);
      return true;
    };
  };
  const probes = (): string[] => archive.requests.filter((path) => path.endsWith('.CHECKSUM'));
  const USED = /^warning: the listing at 127\.0\.0\.1:\d+ is not available \(.*\): its copy of .* is used; /m;

  const SILENCES: readonly [
    what: string,
    answer: (request: IncomingMessage, response: ServerResponse) => void,
  ][] = [
    ['answers 503', (_, response) => response.writeHead(503).end()],
    ['hangs up', (request) => request.socket.destroy()],
    ['says nothing', () => undefined],
  ];
  it.each(SILENCES)(
    'that %s leaves the plan as it was when it last answered, and a warning',
    async (_, answer) => {
      const { run } = place();
      await run(THEN, '--force');
      const before = await run(THEN, '--dry-run', '--force');
      archive.requests.length = 0;
      answerAll(answer);
      const after = await run(THEN, '--dry-run', '--force', '--headers-timeout', '300ms');
      expect([after.code, after.stdout]).toEqual([0, before.stdout]);
      expect(before.stderr).not.toContain('warning');
      expect(after.stderr).toMatch(USED);
      expect(after.stderr).toContain(' 0ms ago (2026-11-21 12:00 UTC)');
      // Of both symbols, what the copy could not have yet; no calendar is probed.
      expect(probes().length).toBeLessThanOrEqual(8);
      expect(after.stderr).not.toContain('the sidecar of each selected period is requested');
    },
  );

  it('serves another marker weeks later, and newer objects are found', async () => {
    const { run } = place();
    expect((await run(THEN)).code).toBe(0);
    makeArchive(folder, { ...BTC, from: '2026-11-21', to: '2026-12-19' });
    answerAll((request) => request.socket.destroy());
    const result = await run(LATER, '--json', '--days', '25');
    expect(result.code).toBe(0);
    expect(result.events.at(-1)).toMatchObject({
      // With the days before the range that the order lacks: four, and three more of the symbol that has ended.
      outcomes: { ok: 29, absent: 32 },
      absent: { 'not-published-yet': 32 },
    });
    const warnings = result.events.filter(({ event }) => event === 'warning');
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/its copy of 29 days ago \(2026-11-21 12:00 UTC\) is used/),
      // The first run needed no months of the symbol that has ended.
      expect.stringContaining('the listing of um klines 1h GONEUSDT is not available'),
    ]);
  });

  it.each([403, 404, 451])('that answers %i has answered: no copy is used', async (status) => {
    const { run } = place();
    await run(THEN);
    answerAll((_, response) => response.writeHead(status).end('<Error><Code>AccessDenied</Code></Error>'));
    const result = await run(THEN, '--dry-run', '--force');
    expect(result.code).toBe(0);
    expect(result.stderr).not.toMatch(USED);
    expect(result.stderr).toContain('the sidecar of each selected period is requested');
  });
});

describe('exchangeInfo', () => {
  const SYMBOLS = [
    { symbol: 'BTCUSDT', host: 'fapi' },
    { symbol: 'ETHUSDT', host: 'fapi' },
  ] as const;
  const WHAT = ['metrics', '--dataset', 'openInterestHist', '--symbols', '*USDT', '--days', '1'];
  const USED =
    /^warning: exchangeInfo of 127\.0\.0\.1:\d+ is not available \(.*\): its copy of .* ago \(2026-11-21 08:00 UTC\) is used; /m;

  async function scene(answer: (asked: Asked) => VenueAnswer | undefined): Promise<MetricsScene> {
    const disturb = (asked: Asked): VenueAnswer | undefined =>
      asked.path.endsWith('/exchangeInfo') ? answer(asked) : undefined;
    const opened = await closing(metricsScene(scratch, { symbols: SYMBOLS, disturb }));
    return opened;
  }

  const SILENCES: readonly [string, VenueAnswer][] = [
    ['answers 503', serverError(503)],
    ['says nothing', { ...json('{"symbols":[]}'), cut: 'stall' }],
  ];
  it.each(SILENCES)('that %s: the symbols that it told last are used, with a warning', async (_, answer) => {
    let isDown = false;
    const { run } = await scene(() => (isDown ? answer : undefined));
    const state = ['--state-dir', join(scratch, randomUUID()), '--idle-timeout', '200ms'];
    const first = await run([...WHAT, ...state, '--json']);
    expect([first.code, first.stderr.includes('warning')]).toEqual([0, false]);
    isDown = true;
    const second = await run([...WHAT, ...state, '--json', '--force']);
    expect([second.code, second.stderr]).toEqual([0, expect.stringMatching(USED)]);
    const outcomes = first.events.at(-1)?.['outcomes'];
    expect(second.events.at(-1)).toMatchObject({ outcomes });
    expect(second.events.filter(({ event }) => event === 'warning')).toHaveLength(1);
  });

  it('that answers 451 has answered: the archive says which symbols there are', async () => {
    let isRestricted = false;
    const opened = await closing(
      joinedScene(scratch, {
        symbols: SYMBOLS,
        disturb: ({ path }) => (isRestricted && path.endsWith('/exchangeInfo') ? restricted() : undefined),
      }),
    );
    publishMetrics(opened.folder, SYMBOLS[0], Date.parse('2026-11-20'));
    const state = ['--state-dir', join(scratch, randomUUID())];
    await opened.run([...WHAT, ...state]);
    isRestricted = true;
    const result = await opened.run([...WHAT, ...state]);
    expect(result.stderr).toContain("the archive's symbols are taken instead");
    expect(result.stderr).not.toMatch(USED);
  });
});
