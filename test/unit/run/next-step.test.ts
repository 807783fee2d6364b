import { expect, it } from 'vitest';
import { Counters } from '../../../src/model/counters.js';
import { nextStep } from '../../../src/run/download.js';

const RETRY = 'cryptodl retry report.jsonl';

it.each([
  ['failures that may succeed later', { failedRetryable: 2 }, RETRY],
  ['hosts that asked for too long a wait', { failedPermanent: 3, waitedTooLong: 1 }, RETRY],
  [
    'stale checksums alone',
    { 'failedBy.sidecar-stale': 2, failedRetryable: 2, failedPermanent: 1 },
    `${RETRY} --stale-checksum warn`,
  ],
  ['stale checksums among others', { 'failedBy.sidecar-stale': 2, failedRetryable: 3 }, RETRY],
])('after %s comes a retry', (_, failed, next) => {
  expect(nextStep(new Counters(failed), 'report.jsonl')).toBe(next);
});

it('after failures that stay comes the same command, and no retry', () => {
  const next = nextStep(new Counters({ failedPermanent: 1 }), 'report.jsonl');
  expect(next).toMatch(/^run the same command again later: /);
  expect(next).not.toContain('cryptodl retry');
});

it('the report is a word of a shell', () => {
  const [path, word] = ['my lake/a.jsonl', "'my lake/a.jsonl'"];
  expect(nextStep(new Counters({ failedRetryable: 1 }), path)).toBe(`cryptodl retry ${word}`);
  expect(nextStep(new Counters({ failedPermanent: 1 }), path)).toContain(`; ${word} names the objects`);
});
