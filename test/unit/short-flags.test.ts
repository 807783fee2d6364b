/** Short flags: each has the meaning of its long flag, and mistakes with short flags are explained with long flags. */
import { describe, expect, it } from 'vitest';
import { correctedLine } from '../../src/cli/corrected-line.js';
import { parseCommandLine } from '../../src/cli/program.js';
import { CryptodlError } from '../../src/model/errors.js';
import { VERBS } from '../../src/options/flag-spec.js';
import { FLAG_NAMES, flagSpec, flagsOf } from '../../src/options/flags.js';
import type { RawValues } from '../../src/options/resolve.js';

const STDOUT = { stdout: { write: () => true } };

function valuesOf(line: string): RawValues | undefined {
  return parseCommandLine(line.split(' '), STDOUT)?.values;
}

/** The message and the corrected line of a refused line. */
function refusal(line: string): { message: string; correction: string | undefined } {
  const argv = line.split(' ');
  try {
    parseCommandLine(argv, STDOUT);
  } catch (error) {
    if (!(error instanceof CryptodlError)) throw error;
    const { message, correction } = error;
    return {
      message,
      correction: correction === undefined ? undefined : correctedLine(argv, correction),
    };
  }
  throw new Error(`${line} is not refused`);
}

const SHORT = FLAG_NAMES.flatMap((name) => {
  const { short, value } = flagSpec(name);
  return short === undefined ? [] : [{ name, short, value }];
});

describe.each(SHORT)('-$short', ({ name, short, value }) => {
  it('is accepted by each verb with the long flag, and by no other verb', () => {
    for (const verb of VERBS) {
      const words = [verb, `-${short}`, ...(value === undefined ? [] : ['7'])];
      const operands = {
        run: ['file'],
        retry: ['file'],
        enqueue: ['vision'],
        bars: ['15m'],
      };
      const line = [...words, ...(operands[verb as keyof typeof operands] ?? [])].join(' ');
      if (flagsOf(verb).includes(name))
        expect({ line, values: valuesOf(line) }).toEqual({
          line,
          values: { [name]: [value === undefined ? 'true' : '7'] },
        });
      // `run` adds where the flag of a job belongs.
      else expect(refusal(line).message.split(':')[0]).toBe(`${verb} has no flag -${short}`);
    }
  });
});

it.each([
  ['vision -nq', { 'dry-run': ['true'], quiet: ['true'] }],
  ['vision -nsBTCUSDT', { 'dry-run': ['true'], symbols: ['BTCUSDT'] }],
  ['vision -sBTCUSDT -d7', { symbols: ['BTCUSDT'], days: ['7'] }],
  ['vision -s=BTCUSDT', { symbols: ['BTCUSDT'] }],
  ['vision -s BTCUSDT -s ETHUSDT', { symbols: ['BTCUSDT', 'ETHUSDT'] }],
  ['vision -s -', { symbols: ['-'] }],
  ['vision -dx', { days: ['x'] }],
  ['vision -fcsv -mum -i1h -o./lake', { format: ['csv'], market: ['um'], interval: ['1h'], out: ['./lake'] }],
])('%s is parsed as getopt does', (line, values) => {
  expect(valuesOf(line)).toEqual(values);
});

it.each([
  ['vision -s', '--symbols needs a value', 'cryptodl vision --symbols BTCUSDT'],
  ['vision -s -n', '--symbols needs a value', 'cryptodl vision --symbols BTCUSDT --dry-run'],
  ['vision -d -3', '--days: "-3" is not a whole number of at least 1', 'cryptodl vision --days 3'],
  ['vision -nx', 'vision has no flag -nx', undefined],
  ['vision -n=true', '--dry-run takes no value', 'cryptodl vision --dry-run'],
  ['vision -symbols BTCUSDT', 'vision has no flag -symbols', 'cryptodl vision --symbols BTCUSDT'],
  ['vision -outdir lake', 'vision has no flag -outdir', 'cryptodl vision --out lake'],
  ['vision -interval 1h', 'vision has no flag -interval', 'cryptodl vision --interval 1h'],
])('%s is refused', (line, message, correction) => {
  const refused = refusal(line);
  expect(refused.message).toBe(message);
  expect(refused.correction).toBe(correction);
});

it('words after -- stay as they are', () => {
  expect(parseCommandLine(['schedule', '--', 'vision', '-s', 'BTCUSDT'], STDOUT)?.behind).toEqual([
    'vision',
    '-s',
    'BTCUSDT',
  ]);
});
