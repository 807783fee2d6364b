import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { HostStates } from '../../src/http/host-states.js';
import { CryptodlError } from '../../src/model/errors.js';
import type { ErrorCode } from '../../src/model/errors.js';
import type { Io } from '../../src/model/io.js';
import type { PartitionPlan, PlanTotals } from '../../src/model/task.js';
import { liveLines, progressText } from '../../src/run/report/progress-state.js';
import { LiveScreen, progressMode, RunProgress } from '../../src/run/report/run-progress.js';
import type { NetworkFigures } from '../../src/run/report/figures.js';
import type { ProgressState } from '../../src/run/report/progress-state.js';
import { openLogOf } from '../../src/run/report/log.js';
import { Reporter } from '../../src/run/report/reporter.js';
import { Figures } from '../../src/run/report/figures.js';
import { LiveRun } from '../../src/run/report/live-run.js';
import type { ProgressOptions } from '../../src/run/report/run-progress.js';
import { Tally } from '../../src/run/report/tally.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const NO_HOSTS: HostStates = { buckets: [], breakers: [], retryBudgets: {} };
const STATE: ProgressState = {
  phase: 'work',
  elapsedMs: 60_000,
  requests: 260,
  objects: 120,
  totalObjects: 480,
  bytes: 10_000_000,
  totalBytes: 40_000_000,
  bytesPerSecond: 166_667,
  inFlight: 30,
  places: 48,
  isSettled: false,
  converting: 0,
  toWrite: 0,
  committing: 0,
  retried: 0,
  failed: 0,
  errors: {},
  hosts: NO_HOSTS,
};

describe('the line of a log', () => {
  it('has counts, bytes, speed, time left and objects in flight', () => {
    expect(progressText(STATE)).toBe('120/480 objects, 10 MB of 40 MB, 167 kB/s, ETA 3m, 30 in flight');
  });
});

const WIDE = { columns: 120, rows: 24 };
const view = (changes: Partial<ProgressState> = {}, size = WIDE): string[] =>
  liveLines({ ...STATE, ...changes }, size);

describe('the live view', () => {
  it('has the totals and a line for each active stage', () => {
    expect(view()).toEqual([
      '  █████░░░░░░░░░░░░░░░ 25%  120/480 objects, 10 MB of 40 MB, ETA 3m',
      '  download   30 in flight of 48, 167 kB/s',
    ]);
    expect(view({ inFlight: 0, objects: 479, failed: 1, converting: 2, toWrite: 3, committing: 1 })).toEqual([
      '  ████████████████████ 100%  479/480 objects, 10 MB of 40 MB, 1 failed',
      '  convert    2 files, 3 wait',
      '  commit     1 file',
    ]);
  });

  it('tells that the number in flight has settled, and that objects wait for another round', () => {
    expect(view({ isSettled: true, places: 30 })[1]).toBe(
      '  download   30 in flight, limit settled at 30, 167 kB/s',
    );
    expect(view({ inFlight: 0 })[1]).toBe('  download   360 objects left for another round');
  });

  it('has a line for each host whose breaker is not closed, and for each limit with waiting requests', () => {
    const idle = { waiting: 0, nextMs: 0, pausedMs: 0, window: undefined };
    const lines = (hosts: Omit<HostStates, 'retryBudgets'>): string[] =>
      view({ hosts: { ...NO_HOSTS, ...hosts } }).slice(2);
    expect(
      lines({
        breakers: [
          { host: 'one.test', state: 'open', leftMs: 12_400 },
          { host: 'two.test', state: 'open', leftMs: 0 },
        ],
        buckets: [
          { ...idle, name: 'fapi', waiting: 3, nextMs: 14_000 },
          { ...idle, name: 'dapi' },
        ],
      }),
    ).toEqual([
      '  host       one.test: breaker open, tries again in 12s',
      '  host       two.test: breaker open, tries again now',
      '  limit      fapi: 3 requests wait 14s for a permit',
    ]);
    expect(lines({ breakers: [], buckets: [], deadProxies: ['10.0.0.1:3128'] })).toEqual([
      '  proxy      10.0.0.1:3128: does not work, tried again now and then',
    ]);
    expect(
      lines({
        breakers: [
          { host: 'one.test', state: 'half-open', leftMs: 0 },
          { host: 'two.test', state: 'stopped', leftMs: 0 },
        ],
        buckets: [
          { ...idle, name: 'archive', waiting: 1, nextMs: 2000, pausedMs: 2000 },
          { ...idle, name: 'listing', waiting: 2, nextMs: 10 },
        ],
      }),
    ).toEqual([
      '  host       one.test: breaker half-open, a few requests test the host',
      '  host       two.test: refuses this address, gets no more requests',
      '  limit      archive: 1 request waits 2s, as the host asked',
      '             and 1 more',
    ]);
  });

  it('collapses errors by kind, the most frequent first', () => {
    const errors = { 'checksum-mismatch': 1, 'connection-lost': 3 } as const;
    expect(view({ errors })[2]).toBe('  errors     all retried: 3 connection-lost, 1 checksum-mismatch');
    expect(view({ errors, failed: 2 })[2]).toMatch(/ 2 objects failed: 3 connection-lost, /);
  });

  it('has no more lines than fit, and keeps the totals and the errors longest', () => {
    const busy = { converting: 2, committing: 1, errors: { 'connection-lost': 3 } } as const;
    expect(view(busy)).toHaveLength(5);
    expect(view(busy, { columns: 80, rows: 3 }).map((line) => line.trim().split(' ')[0])).toEqual([
      expect.stringMatching(/^█+░+$/),
      'download',
      'errors',
    ]);
    expect(view(busy, { columns: 20, rows: 1 })).toEqual([
      '  █░░░ 25%  120/480 objects, 10 MB of 40 MB, ETA 3m',
    ]);
    expect(view({}, { columns: 20, rows: 9 })[1]).toBe('  download 30 in flight of 48, 167 kB/s');
  });
});

/** A stream that is a terminal of this size. */
function terminal(columns: number, rows: number) {
  const stream = Object.assign(new PassThrough(), { columns, rows });
  return { stream, sent: () => String(stream.read() ?? '') };
}

describe('the screen of the live view', () => {
  it('cuts lines that are too wide and leaves out those that do not fit', () => {
    const { stream, sent } = terminal(20, 3);
    const screen = new LiveScreen(stream);
    screen.draw(['a line of thirty characters ...', 'short', 'too low']);
    const text = sent();
    expect(text).toContain('a line of thirty c…\u001b[K\r\n');
    expect(text).not.toContain('too low');
    // The cursor is in the empty line above them.
    expect(text.endsWith('\u001b[2A\r\u001b[?7h')).toBe(true);
  });
});

/** A run whose objects arrive when the test says so. */
function followed(mode: ProgressOptions['mode'], label = '') {
  const clock = new VirtualClock();
  const { stream, sent } = terminal(80, 24);
  const events: Record<string, unknown>[] = [];
  const emit = (fields: object): void => void events.push({ ...fields });
  const progress = new RunProgress({ mode, stream, label, clock, emit });
  const state: { hosts: HostStates } = { hosts: NO_HOSTS };
  const live = new LiveRun(clock);
  live.follow(progress);
  const figures = new Figures(live.counts);
  live.network = () => ({ concurrency: 8 }) as NetworkFigures;
  live.hosts = () => state.hosts;
  const tally = new Tally();
  const begin = (): void => {
    live.begin('commit', { plan: { label: '2024-01' } as PartitionPlan });
    const totals = { fetch: 480, fetchBytes: 40_000_000 } as PlanTotals;
    live.plan = { totals, tally, state: () => ({ inFlight: 4, writing: 2, toWrite: 3 }) };
    live.enter('working');
  };
  const arrive = (objects: number): void => {
    for (let object = 0; object < objects; object += 1) live.observer.arrived(1000);
  };
  const retry = (code: ErrorCode, usesAttempt = true): void => {
    const error = new CryptodlError(code, 'said by the test');
    figures.onRetry({ usesAttempt, error });
  };
  const attempts = (count: number): void => {
    for (let attempt = 0; attempt < count; attempt += 1) live.counts.add('attempts');
  };
  const fail = (code: ErrorCode): void => {
    tally.add('outcome.failed');
    tally.add(`failedBy.${code}`);
  };
  return { clock, stream, sent, events, progress, live, begin, state, arrive, retry, attempts, fail };
}

describe('the progress of a run', () => {
  it('plain: a line every ten seconds, with the speed of the last ten, and none after the end', async () => {
    const { clock, sent, live, begin, arrive } = followed('plain', '[job] ');
    live.enter('selecting');
    await clock.advance(60_000);
    expect(sent()).toBe('');
    begin();
    arrive(120);
    await clock.advance(9999);
    expect(sent()).toBe('');
    await clock.advance(1);
    expect(sent()).toBe('[job] 120/480 objects, 120 kB of 40 MB, 12 kB/s, ETA 30s, 4 in flight\n');
    await clock.advance(10_000);
    expect(sent()).toBe('[job] 120/480 objects, 120 kB of 40 MB, 0 B/s, ETA 60s, 4 in flight\n');
    live.enter('ending');
    await clock.advance(60_000);
    expect(sent()).toBe('');
    expect(clock.waiting).toBe(0);
  });

  it('json: an event every second from the plan on, and one at the end', async () => {
    const { clock, sent, events, progress, live, begin, arrive, retry } = followed('json');
    live.enter('selecting');
    await clock.advance(1000);
    expect(events).toMatchObject([{ phase: 'plan', elapsedMs: 1000, leftMs: null, totalObjects: 0 }]);
    // Of the listing: it is no retry of an object.
    retry('idle-timeout');
    begin();
    arrive(120);
    retry('connection-lost');
    retry('rate-limited', false);
    await clock.advance(3000);
    expect(events).toHaveLength(4);
    expect(events.at(-1)).toEqual({
      phase: 'work',
      elapsedMs: 3000,
      leftMs: 9000,
      requests: 0,
      objects: 120,
      totalObjects: 480,
      bytes: 120_000,
      totalBytes: 40_000_000,
      bytesPerSecond: 40_000,
      inFlight: 4,
      places: 8,
      isSettled: false,
      converting: 1,
      toWrite: 3,
      committing: 1,
      retried: 1,
      failed: 0,
      errors: { 'idle-timeout': 1, 'connection-lost': 1 },
      breakers: [],
      buckets: [],
    });
    arrive(360);
    live.enter('ending');
    progress.stop();
    expect(events).toHaveLength(5);
    expect(events.at(-1)).toMatchObject({ objects: 480, leftMs: 0 });
    expect(sent()).toBe('');
    expect(clock.waiting).toBe(0);
  });

  it('json: has the failed objects with their errors, and the hosts that hold the run back', async () => {
    const { clock, events, progress, begin, state, arrive, fail } = followed('json');
    begin();
    arrive(1);
    fail('http-refused');
    fail('http-refused');
    await clock.advance(1000);
    expect(events.at(-1)).toMatchObject({
      objects: 1,
      failed: 2,
      retried: 0,
      errors: { 'http-refused': 2 },
      breakers: [],
      buckets: [],
    });
    // The states of the hosts are read again.
    const breaker = { host: 'one.test', state: 'open', leftMs: 5000 } as const;
    const bucket = { name: 'fapi', waiting: 3, nextMs: 10, pausedMs: 0, window: undefined };
    state.hosts = {
      ...NO_HOSTS,
      breakers: [breaker],
      buckets: [bucket, { ...bucket, name: 'dapi', waiting: 0 }],
    };
    await clock.advance(1000);
    expect(events.at(-1)).toMatchObject({ breakers: [breaker], buckets: [bucket] });
    progress.stop();
  });

  it('bar: at most five frames a second, none without a change, and nothing left at the end', async () => {
    const { clock, sent, progress, live, begin, arrive } = followed('bar');
    live.enter('selecting');
    await clock.advance(999);
    expect(sent()).toBe('');
    begin();
    arrive(1);
    await clock.advance(200);
    const frame = sent();
    expect(frame).toContain('1/480 objects');
    expect(frame).toContain('4 in flight of 8, 5.0 kB/s');
    for (let ms = 0; ms < 1000; ms += 10) {
      arrive(1);
      await clock.advance(10);
    }
    expect(sent().match(/objects/g)).toHaveLength(5);
    progress.clear();
    expect(sent()).toBe('\r\u001b[J');
    expect(progress.stop()).toBe(true);
    expect(sent()).toBe('');
    expect(progress.stop()).toBe(false);
    expect(clock.waiting).toBe(0);
  });
});

describe('the form of the progress', () => {
  const usual = { progress: 'auto', json: false, logFile: undefined, logLevel: 'info' } as const;
  const given = (
    options: Partial<Parameters<typeof progressMode>[0]> = {},
    environment: Readonly<Record<string, string>> = {},
    { isTTY = true, isBeside = false } = {},
  ): string =>
    progressMode({ ...usual, ...options }, { stderr: { isTTY } as Io['stderr'], environment }, isBeside);

  it('is a live view only on a terminal of its own', () => {
    expect([given(), given({ progress: 'bar' })]).toEqual(['bar', 'bar']);
    for (const progress of ['auto', 'bar'] as const) {
      expect(given({ progress }, {}, { isTTY: false })).toBe('plain');
      expect(given({ progress }, { TERM: 'dumb' })).toBe('plain');
      expect(given({ progress }, {}, { isBeside: true })).toBe('plain');
      expect(given({ progress, logLevel: 'debug' })).toBe('plain');
      expect(given({ progress, logLevel: 'debug', logFile: 'run.log' })).toBe('bar');
    }
  });

  it('is lines with --json and in CI, unless a bar is asked for', () => {
    expect([given({ json: true }), given({}, { CI: '1' })]).toEqual(['plain', 'plain']);
    expect(given({}, { CI: '' })).toBe('bar');
    expect([given({ progress: 'bar', json: true }), given({ progress: 'bar' }, { CI: '1' })]).toEqual([
      'bar',
      'bar',
    ]);
  });
});

it('warnings of a quiet run are printed only with its error, at most twenty of them', () => {
  const { clock, stream, sent } = followed('none');
  const log = openLogOf({ logFile: undefined, logLevel: 'info' }, { stderr: stream });
  const outputs = { stdout: stream, stderr: stream, clock, log };
  const reporter = new Reporter({ ...outputs, json: false, quiet: true, progress: 'plain' });
  for (let number = 1; number <= 23; number += 1) reporter.warn(String(number));
  expect(sent()).toBe('');
  reporter.end(['the end'], { error: undefined, isWell: false });
  expect(sent().trimEnd().split('\n')).toEqual([
    ...Array.from({ length: 20 }, (_, at) => `warning: ${at + 1}`),
    '… and 3 more warnings',
    'the end',
  ]);
  reporter.end(['well'], { error: undefined, isWell: true });
  expect(sent()).toBe('');
});
