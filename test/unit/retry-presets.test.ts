import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../../src/options/resolve.js';
import type { RawValues } from '../../src/options/resolve.js';
import { backoffOf } from '../../src/http/stack.js';

function backoffWith(values: RawValues) {
  const layer = { origin: 'flag', values, nameOf: (name: string) => `--${name}` } as const;
  return backoffOf(resolveOptions('vision', [layer]).options);
}

describe('the presets of retries', () => {
  it.each([
    ['vision', 2, 100, 1.5, 2000],
    ['metrics', 3, 1000, 2, 60_000],
    ['realtime', 5, 2000, 2, 60_000],
    ['history', 2, 500, 2, 60_000],
    ['supplementary', 1, 100, 2, 2000],
  ])('%s: %d retries from %d ms, times %d, up to %d ms', (name, retries, baseDelayMs, factor, maxDelayMs) => {
    const found = backoffWith({ 'retry-preset': [name] });
    expect(found).toEqual({ strategy: 'full', retries, baseDelayMs, factor, maxDelayMs });
  });

  it('vision is the one that is taken when nothing is said', () => {
    expect(backoffWith({})).toEqual(backoffWith({ 'retry-preset': ['vision'] }));
  });

  it('single things beat the preset', () => {
    const delays = { 'retry-delay': ['3s'], 'retry-factor': ['2.5'], 'retry-max-delay': ['90s'] };
    const values = { retries: ['7'], 'retry-strategy': ['linear'], ...delays };
    expect(backoffWith({ 'retry-preset': ['history'], ...values })).toEqual({
      strategy: 'linear',
      retries: 7,
      baseDelayMs: 3000,
      factor: 2.5,
      maxDelayMs: 90_000,
    });
  });
});
