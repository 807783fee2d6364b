import { VERBS } from '../../../src/main.js';
import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import type { RawValues } from '../../../src/plan/options/resolve.js';

function optionsWith(values: RawValues) {
  const layer = { origin: 'flag', values, nameOf: (name: string) => `--${name}` } as const;
  return resolveOptions(VERBS.vision, [layer]).options;
}

describe('the presets of retries', () => {
  it.each([
    ['vision', 2, 100, 1.5, 2000],
    ['metrics', 3, 1000, 2, 60_000],
    ['realtime', 5, 2000, 2, 60_000],
    ['history', 2, 500, 2, 60_000],
    ['supplementary', 1, 100, 2, 2000],
  ])('%s: %d retries from %d ms, times %d, up to %d ms', (name, retries, firstMs, factor, longestMs) => {
    const delays = { retryDelayMs: firstMs, retryFactor: factor, retryMaxDelayMs: longestMs };
    const found = optionsWith({ 'retry-preset': [name] });
    expect(found).toMatchObject({ retryStrategy: 'full', retries, ...delays });
  });

  it('vision is the one that is taken when nothing is said', () => {
    expect(optionsWith({})).toEqual(optionsWith({ 'retry-preset': ['vision'] }));
  });

  it('single things beat the preset', () => {
    const delays = { 'retry-delay': ['3s'], 'retry-factor': ['2.5'], 'retry-max-delay': ['90s'] };
    const values = { retries: ['7'], 'retry-strategy': ['linear'], ...delays };
    expect(optionsWith({ 'retry-preset': ['history'], ...values })).toMatchObject({
      retryStrategy: 'linear',
      retries: 7,
      retryDelayMs: 3000,
      retryFactor: 2.5,
      retryMaxDelayMs: 90_000,
    });
  });
});
