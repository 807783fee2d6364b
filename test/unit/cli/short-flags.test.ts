/** Short flags: each has the meaning of its long flag, and other spellings are accepted. */
import { VERBS } from '../../../src/main.js';
import { describe, expect, it } from 'vitest';
import { parseCommandLine } from '../../../src/cli/program.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { FLAG_NAMES, flagSpec } from '../../../src/plan/options/flags.js';
import { flagsOf } from '../../../src/plan/options/verb-spec.js';
import type { RawValues } from '../../../src/plan/options/resolve.js';

const STDOUT = { write: () => true };

function valuesOf(line: string): RawValues | undefined {
  return parseCommandLine(line.split(' '), VERBS, STDOUT)?.values;
}

/** The message of a refused line. */
function refusal(line: string): string {
  try {
    valuesOf(line);
  } catch (error) {
    if (error instanceof CryptodlError) return error.message;
    throw error;
  }
  throw new Error(`${line} is not refused`);
}

const SHORT = FLAG_NAMES.flatMap((name) => {
  const { short, value } = flagSpec(name);
  return short === undefined ? [] : [{ name, short, value }];
});

describe.each(SHORT)('-$short', ({ name, short, value }) => {
  it('is accepted by each verb with the long flag, and by no other verb', () => {
    for (const verb of Object.values(VERBS)) {
      const words = [verb.name, `-${short}`, ...(value === undefined ? [] : ['7'])];
      const operands = {
        run: ['file'],
        retry: ['file'],
        enqueue: ['vision'],
        bars: ['15m'],
      };
      const line = [...words, ...(operands[verb.name as keyof typeof operands] ?? [])].join(' ');
      if (flagsOf(verb).includes(name))
        expect({ line, values: valuesOf(line) }).toEqual({
          line,
          values: { [name]: [value === undefined ? 'true' : '7'] },
        });
      else expect(refusal(line)).toBe(`${verb.name} has no flag -${short}`);
    }
  });
});

it('words after -- stay as they are', () => {
  expect(parseCommandLine(['schedule', '--', 'vision', '-s', 'BTCUSDT'], VERBS, STDOUT)?.behind).toEqual([
    'vision',
    '-s',
    'BTCUSDT',
  ]);
});
