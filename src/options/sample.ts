/** A sample of the periods of each series: `--sample 5`, or with the seed of an earlier draw `--sample 5:1f2e3d4c`. */
import { parser } from './parsers.js';

export interface Sample {
  /** Periods of each series, at most. */
  readonly count: number;
  /** Empty: the command draws one. */
  readonly seed: string;
  /** `5:1f2e3d4c`, or `5` without a seed. */
  readonly text: string;
}

export const sample = parser('a number of days or months, or N:SEED', ['5', '5:1f2e3d4c'], (text) => {
  const [, count, seed = ''] = /^([1-9]\d{0,8})(?::(\w{1,64}))?$/.exec(text) ?? [];
  return count === undefined ? undefined : sampleOf(Number(count), seed);
});

export function sampleOf(count: number, seed: string): Sample {
  return { count, seed, text: seed === '' ? String(count) : `${count}:${seed}` };
}
