/** The data of jobs: what a worker takes from a queue, and what it refuses. */
import { describe, expect, it } from 'vitest';
import { failuresIn, priorityOf } from '../../../src/verbs/queue/add-jobs.js';
import { jobData, jobId, lakeProblem, parseJob } from '../../../src/verbs/queue/job-data.js';
import { jobErrorOf } from '../../../src/verbs/queue/end-attempt.js';

const OPTIONS = {
  market: ['um'],
  dataset: ['klines'],
  interval: ['1m'],
  symbols: ['BTCUSDT'],
  from: ['2024-01-01'],
  to: ['2024-12-31'],
  out: ['s3://lake/data'],
};
const job = jobData('vision', OPTIONS);

describe('a job', () => {
  it('passes the queue unchanged', () => {
    expect(parseJob(JSON.parse(JSON.stringify(job)))).toEqual(job);
  });

  it('has the same name for the same work, and another for other files', () => {
    const same = jobData('vision', Object.fromEntries(Object.entries(OPTIONS).toReversed()));
    expect(jobId(same)).toBe(jobId(job));
    expect(jobId(job)).toMatch(/^vision~um~klines~1m~BTCUSDT~2024-01-01~2024-12-31~[0-9a-f]{12}$/);
    for (const change of [{ format: ['csv'] }, { numbers: ['string'] }, { out: ['s3://other'] }])
      expect(jobId(jobData('vision', { ...OPTIONS, ...change }))).not.toBe(jobId(job));
  });

  it.each([
    ['another verb', { v: 1, verb: 'serve', options: OPTIONS }],
    ['a list in a file', { ...job, options: { ...OPTIONS, symbols: ['@/etc/passwd'] } }],
    ['a pattern', { ...job, options: { ...OPTIONS, symbols: ['*USDT'] } }],
    ['a path', { ...job, options: { ...OPTIONS, symbols: ['../../x'] } }],
    ['an address', { ...job, options: { ...OPTIONS, 'archive-url': ['http://127.0.0.1'] } }],
    ['a folder for temporary files', { ...job, options: { ...OPTIONS, 'temp-dir': ['/etc'] } }],
    ['two symbols', { ...job, options: { ...OPTIONS, symbols: ['A', 'B'] } }],
    ['two datasets', { ...job, options: { ...OPTIONS, dataset: ['klines,trades'] } }],
    ['no range', { ...job, options: { ...OPTIONS, from: undefined } }],
    ['a number', { ...job, options: { ...OPTIONS, out: [1] } }],
    ['orders of another program', { ...job, orders: [{ id: '../../x', symbols: ['A'] }] }],
    ['no options', { v: 1, verb: 'vision' }],
    ['text', 'text'],
    ['nothing', null],
  ])('with %s is refused', (_, data) => {
    expect(() => parseJob(data)).toThrow(/job/);
  });
});

it('only failures of objects travel with a job', () => {
  const good = { key: 'a.zip', code: 'http-server-error', message: 'm' };
  const failures = [
    null,
    'text',
    { ...good, key: 1 },
    { ...good, code: 'redis-refused' },
    { ...good, code: 'constructor' },
    { ...good, message: undefined },
    { ...good, key: 'b.zip', message: 'x'.repeat(5000) },
    good,
  ];
  const found = failuresIn({ failures });
  expect([...found].map(([key, { code }]) => [key, code])).toEqual([
    ['b.zip', 'http-server-error'],
    ['a.zip', 'http-server-error'],
  ]);
  expect(found.get('b.zip')?.message.length).toBe(1000);
  for (const data of [null, 'text', {}, { failures: 'text' }, { failures: { 0: good } }])
    expect(failuresIn(data).size).toBe(0);
});

it('a worker writes only to the lake of its --out, or without one into buckets', () => {
  expect(lakeProblem('/lake', '/lake', true)).toBeUndefined();
  expect(lakeProblem('s3://lake', '/srv/data', false)).toBeUndefined();
  expect(lakeProblem('s3://lake', '/srv/data', true)).toContain('s3://lake');
  expect(lakeProblem('/elsewhere', '/srv/data', false)).toContain('/elsewhere');
});

it('a failure of the queue is checked', () => {
  const failure = { code: 'connection-lost', retryable: true, attempts: 3, message: 'lost', keys: ['a.zip'] };
  expect(jobErrorOf({ progress: failure })).toEqual({ code: 'connection-lost', retryable: true });
  expect(jobErrorOf({ progress: { ...failure, code: '<script>' } })?.code).toBe('unknown');
  for (const progress of [0, null, 'text', {}, { code: 'usage' }])
    expect(jobErrorOf({ progress })).toBeUndefined();
});

it('a waiting job is overtaken only by jobs that come within 12 hours per level', () => {
  const now = Date.parse('2026-11-23T00:00:00Z');
  const hours = (count: number): number => now + count * 3_600_000;
  expect(priorityOf('high', now)).toBeLessThan(priorityOf('normal', now));
  expect(priorityOf('high', hours(11))).toBeLessThan(priorityOf('normal', now));
  expect(priorityOf('high', hours(13))).toBeGreaterThan(priorityOf('normal', now));
  expect(priorityOf('high', hours(25))).toBeGreaterThan(priorityOf('low', now));
});
