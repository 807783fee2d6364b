import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { Io } from '../../../src/model/io.js';
import type { PartitionPlan, PlanTotals } from '../../../src/model/task.js';
import { barText, progressText } from '../../../src/run/report/run-progress.js';
import { progressMode, RunProgress } from '../../../src/run/report/run-progress.js';
import type { NetworkFigures } from '../../../src/run/report/network-figures.js';
import type { ProgressState } from '../../../src/run/report/run-progress.js';
import { openLogOf } from '../../../src/run/report/log.js';
import { Reporter } from '../../../src/run/report/reporter.js';
import { Figures } from '../../../src/run/report/figures.js';
import { LiveRun, type HostStates } from '../../../src/run/report/live-run.js';
import type { ProgressOptions } from '../../../src/run/report/run-progress.js';
import { Tally } from '../../../src/run/report/tally.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

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

describe('the line of the progress', () => {
  it('has counts, bytes, speed, time left and objects in flight, on a terminal with a bar', () => {
    const text = '120/480 objects, 10 MB of 40 MB, 167 kB/s, ETA 3m, 30 in flight';
    expect(progressText(STATE)).toBe(text);
    expect(barText(STATE)).toBe(`█████░░░░░░░░░░░░░░░ 25%  ${text}`);
    expect(barText({ ...STATE, phase: 'plan', elapsedMs: 3000 })).toBe('plan: 260 requests in 3s');
  });

  it('names the first host and the first limit that hold the run back', () => {
    const idle = { waiting: 0, nextMs: 0, pausedMs: 0, window: undefined };
    const breaker = { host: 'one.test', state: 'open', leftMs: 12_400 } as const;
    const hosts: HostStates = {
      ...NO_HOSTS,
      breakers: [breaker, { ...breaker, host: 'two.test' }],
      buckets: [
        { ...idle, name: 'dapi' },
        { ...idle, name: 'fapi', waiting: 3, nextMs: 14_000 },
      ],
    };
    expect(progressText({ ...STATE, retried: 2, failed: 1, hosts })).toMatch(
      / in flight, 2 retried, 1 failed, one\.test: breaker open, fapi: next permit in 14s$/,
    );
  });
});

/** A stream that is a terminal of this size. */
function terminal(columns: number, rows: number) {
  const stream = Object.assign(new PassThrough(), { columns, rows });
  return { stream, sent: () => String(stream.read() ?? '') };
}

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
    live.progress = { totals, tally, state: () => ({ inFlight: 4, writing: 2, toWrite: 3 }) };
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
    // Cut at the width of the terminal.
    expect(frame.slice('\r\u001b[J'.length)).toMatch(/^░{20} 0% {2}1\/480 objects.{30,}…$/);
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

  it('is a live line only on a terminal of its own', () => {
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
  const options = {
    json: false,
    quiet: true,
    progress: 'plain',
    logFile: undefined,
    logLevel: 'info',
  } as const;
  const io = { stdout: stream, stderr: stream, clock, environment: {} };
  const reporter = new Reporter(options, io, { log: openLogOf(options, io) });
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
