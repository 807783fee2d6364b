import { describe, expect, it } from 'vitest';
import { correctedLine } from '../../src/cli/corrected-line.js';
import type { Correction } from '../../src/model/errors.js';

const TYPED = ['vision', '--symbols', 'BTCUSTD', '--days', '7'];

describe('a corrected command line', () => {
  it.each<[string, readonly string[], Correction, string]>([
    [
      'gives a flag another value where it stands',
      TYPED,
      { flags: { symbols: 'BTCUSDT' } },
      'cryptodl vision --symbols BTCUSDT --days 7',
    ],
    [
      'adds a flag that was not there',
      TYPED,
      { flags: { market: 'cm' } },
      'cryptodl vision --symbols BTCUSTD --days 7 --market cm',
    ],
    [
      'leaves a flag out with its value',
      TYPED,
      { flags: { days: null } },
      'cryptodl vision --symbols BTCUSTD',
    ],
    [
      'keeps one of several occurrences',
      ['vision', '--symbols', 'A', '--quiet', '--symbols=B'],
      { flags: { symbols: 'C' } },
      'cryptodl vision --symbols C --quiet',
    ],
    [
      'knows that a switch has no value',
      ['vision', '--force', 'BTCUSDT'],
      { flags: { force: null } },
      'cryptodl vision BTCUSDT',
    ],
    [
      'does not take the next flag for a value',
      ['vision', '--days', '--quiet'],
      { flags: { days: '7' } },
      'cryptodl vision --days 7 --quiet',
    ],
    [
      'gives an operand another word, and leaves the same word elsewhere',
      ['list', '--quote', 'symbol', 'symbol'],
      { operand: 'symbols' },
      'cryptodl list --quote symbol symbols',
    ],
    [
      'adds an operand',
      ['schema', '--market', 'um'],
      { operand: 'klines' },
      'cryptodl schema --market um klines',
    ],
    [
      'gives a download another verb, and keeps its flags',
      ['vision', '--symbols', 'vision'],
      { verb: 'metrics' },
      'cryptodl metrics --symbols vision',
    ],
    [
      'gives the download after -- another verb',
      ['schedule', '--', 'metrics', '--symbols', 'BTCUSDT'],
      { verb: 'vision' },
      'cryptodl schedule -- vision --symbols BTCUSDT',
    ],
    [
      'changes no flag of a line without a command',
      ['BTCUSDT'],
      { flags: { days: '1' } },
      'cryptodl BTCUSDT',
    ],
    ['adds a switch', ['vision'], { flags: { force: 'true' } }, 'cryptodl vision --force'],
    [
      'takes all words anew',
      ['vision', 'BTCUSDT'],
      { argv: ['vision', '--symbols', 'BTCUSDT'], flags: { days: '1' } },
      'cryptodl vision --symbols BTCUSDT --days 1',
    ],
    [
      'types another command with the places that it takes',
      [...TYPED, '--archive-url=http://127.0.0.1:1', '--out', 'my lake'],
      { command: ['list', 'symbols'] },
      'cryptodl list symbols --archive-url=http://127.0.0.1:1',
    ],
    [
      'quotes what a shell would take apart',
      ['vision', '--symbols', "*USDT,!it's"],
      {},
      String.raw`cryptodl vision --symbols '*USDT,!it'\''s'`,
    ],
    [
      'leaves symbols of any script as they are',
      ['vision', '--symbols', '币安人生USDT'],
      {},
      'cryptodl vision --symbols 币安人生USDT',
    ],
  ])('%s', (_, argv, correction, line) => {
    expect(correctedLine(argv, correction)).toBe(line);
  });
});
