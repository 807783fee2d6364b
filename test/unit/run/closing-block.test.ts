import { describe, expect, it } from 'vitest';
import { dayPeriod, UTC } from '../../../src/model/calendar.js';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { RetryEvent } from '../../../src/model/observer.js';
import type { Outcome } from '../../../src/model/outcome.js';
import { closingBlock, jobsBlock } from '../../../src/run/report/closing-block.js';
import type { Closing } from '../../../src/run/report/closing-block.js';
import { Figures } from '../../../src/run/report/figures.js';
import type { CountName } from '../../../src/run/report/count-outcome.js';
import { Tally } from '../../../src/run/report/tally.js';

const RETRY: RetryEvent = {
  traceId: 'trace',
  attemptId: 'trace/1',
  url: 'http://archive.test/',
  retry: 1,
  usesAttempt: true,
  error: new CryptodlError('connection-lost', 'reset'),
  delayMs: 0,
};

function tallyOf(outcomes: Readonly<Record<string, Outcome>>): Tally {
  const tally = new Tally();
  for (const [key, outcome] of Object.entries(outcomes)) count(tally, key, outcome);
  return tally;
}

function count(tally: Tally, key: string, outcome: Outcome): void {
  const series = { market: 'um', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' } as const;
  tally.count(series, { key, period: dayPeriod(0) }, outcome);
}

/** Twelve requests, two of them extra tries. */
function wire(): Closing['network'] {
  const figures = new Figures();
  for (let request = 0; request < 12; request += 1) figures.begun();
  for (let again = 0; again < 2; again += 1) figures.onRetry(RETRY);
  return figures.figures;
}

function block(tally: Tally, rest: Partial<Closing> = {}): string[] {
  return closingBlock(closingOf(tally, rest));
}

function closingOf(tally: Tally, rest: Partial<Closing>): Closing {
  return {
    tally,
    network: wire(),
    times: TIMES,
    diagnosis: [],
    shard: undefined,
    dataPath: '/lake/binance',
    reportPath: undefined,
    quarantinePath: undefined,
    undone: 0,
    next: undefined,
    alerts: [],
    trouble: { strict: false, nothingNew: false },
    ...rest,
  };
}

const TIMES: Closing['times'] = {
  elapsedMs: 2500,
  planMs: 500,
  pausedMs: 0,
  workMs: 2000,
  stagesMs: { wait: 0, transfer: 0, check: 0, convert: 0, commit: 0 },
};

const ok: Outcome = { kind: 'ok', rows: 1440, bytes: 1000, duplicates: 2, unverified: false };

function failed(code: ErrorCode): Outcome {
  return { kind: 'failed', error: new CryptodlError(code, 'why') };
}

it('the closing block of a run of more than ten seconds says where the time went', () => {
  const times = {
    elapsedMs: 56_500,
    planMs: 18_000,
    pausedMs: 0,
    workMs: 38_500,
    stagesMs: { wait: 1000, transfer: 7000, check: 500, convert: 1500, commit: 0 },
  };
  expect(block(tallyOf({ a: ok }), { times })).toEqual(
    expect.arrayContaining([
      '1 ok in 56.5s',
      "  time       plan 18s, work 38.5s; of the objects' time 10 % wait, 70 % transfer, 5 % check, 15 % convert",
    ]),
  );
  expect(block(tallyOf({ a: ok })).join()).not.toContain('  time');
});

describe('the tally', () => {
  it('tells failures that may succeed later from permanent ones and from waits that were too long', () => {
    const tally = tallyOf({
      a: failed('http-server-error'),
      b: failed('zip-broken'),
      c: failed('wait-too-long'),
      d: failed('zip-broken'),
    });
    expect(tally.status).toMatchObject({ failedRetryable: 1, failedPermanent: 2, waitedTooLong: 1 });
    expect(tally.failedBy).toEqual({ 'http-server-error': 1, 'zip-broken': 2, 'wait-too-long': 1 });
    expect(tally.outcomes.failed).toBe(4);
    expect(tally.examples.get('failedBy.zip-broken')?.map((text) => text.split(':')[0])).toEqual(['b', 'd']);
  });
});

describe('the closing block', () => {
  it('of a run that had nothing to do is short', () => {
    expect(block(new Tally())).toEqual(['nothing to do in 2.5s', '  data       /lake/binance']);
  });

  it('begins with the counts of all outcomes, in a fixed order', () => {
    const tally = tallyOf({
      a: { kind: 'failed', error: new CryptodlError('zip-broken', 'x') },
      b: { kind: 'absent', reason: 'delisted' },
      c: { kind: 'skipped' },
      d: { ...ok, kind: 'partial', expectedRows: 2000 },
      e: ok,
    });
    tally.add('outcome.ok', 1233);
    expect(block(tally, { undone: 7 })[0]).toBe(
      '1,234 ok, 1 partial, 1 skipped, 1 absent, 1 failed, 7 not done in 2.5s',
    );
  });

  it('has the fetched and written amounts, and the duplicates', () => {
    const tally = tallyOf({ a: { ...ok, bytes: 3_000_000 } });
    for (const [name, number] of Object.entries({ files: 1, fileBytes: 5_000_000, duplicatesKept: 4 }))
      tally.add(name as CountName, number);
    expect(block(tally).slice(1, 5)).toEqual([
      '  fetched    3.0 MB at 1.5 MB/s, 12 requests, 2 retried',
      '  written    1,440 rows in 1 file, 5.0 MB',
      '  dropped    2 exact duplicate rows within one object',
      '  kept       4 exact duplicate rows across objects',
    ]);
  });

  it('names holes and partial objects, three of a kind', () => {
    const tally = new Tally();
    for (let index = 0; index < 7; index += 1)
      count(tally, `hole-${index}`, { kind: 'absent', reason: 'hole' });
    count(tally, 'half', { ...ok, kind: 'partial', rows: 7, expectedRows: 1440 });
    const lines = block(tally);
    expect(lines).toContain('      half: 7 of 1440 rows');
    const hole = lines.indexOf('  7 absent, hole');
    expect(lines.slice(hole + 1, hole + 5)).toEqual([
      ...[0, 1, 2].map((index) => `      hole-${index}`),
      '      … and 4 more',
    ]);
  });

  it('counts failures whose objects are not known, without a list of them', () => {
    const tally = new Tally();
    tally.add('failedBy.zip-broken', 2);
    const lines = block(tally);
    expect(lines).toContain('  2 failed, zip-broken');
    expect(lines.join('\n')).not.toContain('more');
  });

  it('has the failures worth a retry, the folders and the next command', () => {
    const tally = tallyOf({
      a: { kind: 'failed', error: new CryptodlError('idle-timeout', 'silence') },
      b: { kind: 'failed', error: new CryptodlError('zip-broken', 'no') },
    });
    const paths = {
      reportPath: '/lake/failures/r.jsonl',
      quarantinePath: '/lake/quarantine',
      next: 'cryptodl retry /lake/failures/r.jsonl',
    };
    const lines = block(tally, paths);
    expect(closingBlock(closingOf(tally, paths), true)).toEqual(
      lines.filter((line) => !line.startsWith('  data ')),
    );
    expect(lines.slice(1)).toEqual([
      '  1 failed, idle-timeout (retrying may help)',
      '      a: silence',
      '  1 failed, zip-broken',
      '      b: no',
      '  data       /lake/binance',
      '  failures   /lake/failures/r.jsonl',
      '  quarantine /lake/quarantine',
      '  next       cryptodl retry /lake/failures/r.jsonl',
    ]);
  });
});

it.each<[string, boolean, readonly RegExp[]]>([
  ['only revisions that were not taken', false, [/revised/]],
  ['with --strict also partial objects and holes', true, [/revised/, /partial/, /hole/]],
])('the closing block for --quiet names %s', (_, strict, titles) => {
  const tally = tallyOf({
    a: { ...ok, kind: 'partial', keptRows: 1441 },
    b: { ...ok, kind: 'partial', expectedRows: 2000 },
    c: { kind: 'absent', reason: 'hole' },
    d: { kind: 'absent', reason: 'delisted' },
  });
  const lines = closingBlock(closingOf(tally, { trouble: { strict, nothingNew: false } }), true);
  expect(lines.filter((line) => /^ {2}\d/.test(line))).toEqual(
    titles.map((title) => expect.stringMatching(title) as unknown),
  );
});

it('the closing block of several jobs has the open objects of each job', () => {
  const jobOf = (name: string, exitCode: number, undone = 0, tally = new Tally()) => ({
    job: { name },
    exitCode,
    end: { tally, undone },
  });
  const jobs = [
    jobOf('full', 1, 63),
    jobOf('stopped', 130, 1005, new Tally(UTC, { 'outcome.ok': 58 })),
    jobOf('held', 0),
    { job: { name: 'refused' }, exitCode: 1 },
    { job: { name: 'waiting' } },
  ];
  expect(jobsBlock({ jobs, elapsedMs: 2500, next: 'cryptodl sql' })).toEqual([
    '5 jobs: 1 succeeded, 4 failed, in 2.5s',
    '  full       63 not done (exit code 1)',
    '  stopped    58 ok, 1,005 not done (exit code 130)',
    '  held       nothing to do',
    '  refused    nothing done (exit code 1)',
    '  waiting    not started',
    '  next       cryptodl sql',
  ]);
});

describe('alerts', () => {
  const alert = (id: string) => ({ id, text: `figure of ${id}`, advice: `change ${id}` });

  it('have a line each before the paths; also in the lines for --quiet', () => {
    const alerts = ['a', 'b', 'c', 'd'].map(alert);
    const expected = ['a', 'b', 'c', 'd'].map((id) => `  alert      figure of ${id}: change ${id}`);
    const lines = block(tallyOf({}), { alerts });
    expect(lines.slice(-5)).toEqual([...expected, '  data       /lake/binance']);
    expect(closingBlock(closingOf(tallyOf({}), { alerts }), true).slice(-4)).toEqual(expected);
  });
});
