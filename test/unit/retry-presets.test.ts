import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../../src/options/resolve.js';
import type { RawValues } from '../../src/options/resolve.js';
import { backoffOf } from '../../src/run/stack.js';

function backoffWith(values: RawValues) {
  const layer = { origin: 'flag', values, nameOf: (name: string) => `--${name}` } as const;
  const { strategy, retries, baseDelayMs, factor } = backoffOf(resolveOptions('vision', [layer]).options);
  return { strategy, retries, baseDelayMs, factor };
}

describe('Z3 Z4 Z12 the presets of retries', () => {
  it.each([
    ['vision', 2, 100, 1.5],
    ['metrics', 3, 1000, 2],
    ['realtime', 5, 2000, 2],
    ['history', 2, 500, 2],
    ['supplementary', 1, 100, 2],
  ])('%s: %d retries from %d ms, times %d', (name, retries, baseDelayMs, factor) => {
    const found = backoffWith({ 'retry-preset': [name] });
    expect(found).toEqual({ strategy: 'full', retries, baseDelayMs, factor });
  });

  it('vision is the one that is taken when nothing is said', () => {
    expect(backoffWith({})).toEqual(backoffWith({ 'retry-preset': ['vision'] }));
  });

  it('single things beat the preset', () => {
    const values = { retries: ['7'], 'retry-delay': ['3s'], 'retry-strategy': ['linear'] };
    expect(backoffWith({ 'retry-preset': ['history'], ...values })).toEqual({
      strategy: 'linear',
      retries: 7,
      baseDelayMs: 3000,
      factor: 2,
    });
  });
});
