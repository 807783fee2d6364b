import { expect, it } from 'vitest';
import { CryptodlError, libraryError } from '../../src/library/error.js';
import { hintInOptionNames, messageInOptionNames } from '../../src/library/option-names.js';
import { CryptodlError as ProgramError, usage } from '../../src/model/errors.js';
import { camelCase, nameOptions } from '../../src/options/flags.js';

it.each([
  ['run it later, or with a longer --max-wait', 'run it later, or with a longer maxWait'],
  ['--from/--to and --days', 'from/to and days'],
  [
    'run it with cryptodl vision --force, or another --out',
    'run it with cryptodl vision --force, or another out',
  ],
  ['npm install --include=optional', 'npm install --include=optional'],
  ['a--out --outer', 'a--out --outer'],
])('%s', (text, renamed) => {
  expect(nameOptions(text, camelCase)).toBe(renamed);
});

it.each([
  ['run it later, or with a longer --max-wait', 'run it later, or with a longer maxWait'],
  ['--from/--to and --days', 'from/to and days'],
  ['--from 2024-02-01 --to 2024-02-02', "from: '2024-02-01', to: '2024-02-02'"],
  ["--symbols BTCUSDT,ETHUSDT or --symbols '*USDT'", "symbols: 'BTCUSDT,ETHUSDT' or symbols: '*USDT'"],
  ['check the network, --archive-url and --listing-url', 'check the network, archiveUrl and listingUrl'],
  [
    'write smaller files (--partition day), or fewer at once (--concurrency 1)',
    "write smaller files (partition: 'day'), or fewer at once (concurrency: 1)",
  ],
  ['leave --force out, or download into another --out', 'leave force out, or download into another out'],
  [
    'download the whole range with cryptodl vision --force',
    'download the whole range with vision({ force: true })',
  ],
  [
    'run it again; cryptodl verify --deep checks the files of the lake',
    'run it again; verify({ deep: true }) checks the files of the lake',
  ],
  ['cryptodl verify --fix, and then cryptodl repair', 'verify({ fix: true }), and then repair()'],
  ['cryptodl list symbols --market um, for example', "list('symbols', { market: 'um' }), for example"],
  [
    'the archive has them: cryptodl vision --market um --dataset metrics,fundingRate',
    "the archive has them: vision({ market: 'um', dataset: 'metrics,fundingRate' })",
  ],
  // The library has no such call or option.
  ['cryptodl doctor --clear-bans fapi.binance.com', 'cryptodl doctor --clear-bans fapi.binance.com'],
  ['the views that cryptodl sql --views prints', 'the views that cryptodl sql --views prints'],
  ['npm install --include=optional', 'npm install --include=optional'],
  ['a--out --outer', 'a--out --outer'],
])('in a hint of the library: %s', (text, renamed) => {
  expect(hintInOptionNames(text)).toBe(renamed);
});

it.each([
  ['--from 2024-02-02 is after --to 2024-02-01', 'from 2024-02-02 is after to 2024-02-01'],
  [
    'the lake is damaged (cryptodl verify --deep gives details)',
    'the lake is damaged (verify({ deep: true }) gives details)',
  ],
])('in a message of the library: %s', (text, renamed) => {
  expect(messageInOptionNames(text)).toBe(renamed);
});

it('an error of the library has the code, the exit code, the cause and the next step', () => {
  const cause = new Error('first');
  const error = libraryError(new ProgramError('wait-too-long', 'no --out', { hint: 'pass --out', cause }));
  expect(error).toBeInstanceOf(CryptodlError);
  expect(error).toMatchObject({ code: 'wait-too-long', message: 'no out', hint: 'pass out', cause });
  expect(error).toMatchObject({ name: 'CryptodlError', exitCode: 7, retryable: true });
});

it.each([
  [{ flags: { days: '7', months: null } }, 'days: 7, without months'],
  [{ flags: { symbols: 'BTCUSDT' } }, "symbols: 'BTCUSDT'"],
  [{ command: ['list', 'datasets'] }, "list('datasets')"],
])('without a hint, the correction %j is the hint', (correction, hint) => {
  expect(libraryError(usage('wrong', undefined, correction))).toMatchObject({ hint });
  expect(libraryError(usage('wrong', 'a hint', correction))).toMatchObject({ hint: 'a hint' });
});

it('an error that is not of the program stays as it is', () => {
  const error = new RangeError('mine');
  expect(libraryError(error)).toBe(error);
});
