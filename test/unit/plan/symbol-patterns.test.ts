import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ReadList } from '../../../src/plan/options/parsers.js';
import { symbolsOption, type SymbolPatterns } from '../../../src/plan/options/symbols.js';
import { meantNames, namesOnly, selectSymbols } from '../../../src/plan/select/match-symbols.js';
import type { SymbolOwner } from '../../../src/plan/select/match-symbols.js';

const AVAILABLE = [
  'BNBUSDT',
  'BTCUSDC',
  'BTCUSDT',
  'BTCUSDT_240329',
  'BUSDUSDT',
  'CVCUSDTSETTLED',
  'ETHBTC',
  'ETHUSDT',
  'ICPUSDT_SETTLED1',
  'USDT',
  '币安人生USDT',
];

const noLists: ReadList = () => Promise.reject(new Error('no list is read'));

const fromStdin: ReadList = (source) => Promise.resolve(source === 'stdin' ? 'ETHBTC\n' : '');

/** The patterns of flags with these values. */
async function patternsOf(values: readonly string[], read = noLists): Promise<SymbolPatterns> {
  return symbolsOption(values.join(','), '--symbols', { readList: read }).patterns();
}

async function select(
  values: readonly string[],
  quotes: readonly string[] = [],
  read = noLists,
  skipUnknown = false,
): Promise<{ symbols: readonly string[]; warnings: readonly string[] }> {
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const place: SymbolOwner = { what: 'um klines', skipUnknown, warn };
  return { symbols: selectSymbols(await patternsOf(values, read), quotes, AVAILABLE, place), warnings };
}

async function symbols(
  values: readonly string[],
  quotes: readonly string[] = [],
): Promise<readonly string[]> {
  return (await select(values, quotes)).symbols;
}

async function refusal(values: readonly string[], quotes: readonly string[] = []): Promise<string[]> {
  try {
    await select(values, quotes);
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'usage') return [error.message, error.hint ?? ''];
    throw error;
  }
  throw new Error('was accepted');
}

describe('--symbols', () => {
  it('takes names, with commas and repeated, once each, in the order of the archive', async () => {
    expect(await symbols(['ETHUSDT, BTCUSDT', 'BTCUSDT', '币安人生USDT,'])).toEqual([
      'BTCUSDT',
      'ETHUSDT',
      '币安人生USDT',
    ]);
  });

  it.each([
    ['B?CUSD*', ['BTCUSDC', 'BTCUSDT', 'BTCUSDT_240329']],
    ['[EI]*', ['ETHBTC', 'ETHUSDT', 'ICPUSDT_SETTLED1']],
    ['币*', ['币安人生USDT']],
  ])('takes the glob %s', async (glob, expected) => {
    expect(await symbols([glob])).toEqual(expected);
  });

  it('all takes all', async () => {
    expect(await symbols(['all'])).toEqual(AVAILABLE);
  });

  it('a name and a glob are added up', async () => {
    expect(await symbols(['USDT', 'ETH*'])).toEqual(['ETHBTC', 'ETHUSDT', 'USDT']);
  });

  it('an exclusion removes symbols at any position', async () => {
    expect(await symbols(['!BUSD*', 'B*USDT', '!BNBUSDT'])).toEqual(['BTCUSDT']);
  });

  it('@FILE has words with commas, spaces, lines and comments', async () => {
    const asked: unknown[] = [];
    const read: ReadList = (source) => {
      asked.push(source);
      return Promise.resolve('# mine\nBTCUSDT,ETHUSDT # majors\r\n\n  BNBUSDT\tUSDT\n!USDT\n#ETHBTC\n');
    };
    const chosen = await select(['@my list.txt'], [], read);
    expect(chosen).toEqual({ symbols: ['BNBUSDT', 'BTCUSDT', 'ETHUSDT'], warnings: [] });
    expect(asked).toEqual([{ file: 'my list.txt' }]);
  });

  it('- is standard input, besides other words', async () => {
    expect((await select(['BTCUSDT,-'], [], fromStdin)).symbols).toEqual(['BTCUSDT', 'ETHBTC']);
  });

  it.each([
    ['BTCUSDT,@list', '../ETH', '--symbols: "../ETH" is not a symbol'],
    ['!BTCUSDT,@list', '!ETHUSDT', '--symbols names no symbol'],
    ['@list', '# none', '--symbols names no symbol'],
  ])('%s is refused if the list is %j', async (value, content, message) => {
    const read: ReadList = () => Promise.resolve(content);
    await expect(patternsOf([value], read)).rejects.toMatchObject({ code: 'usage', message });
  });

  it.each([
    [[''], 'names no symbol'],
    [[',,'], 'names no symbol'],
    [['!BTCUSDT'], 'names no symbol'],
  ])('%j is refused', async (values, text) => {
    const [message, hint] = await refusal(values);
    expect(message).toBe(`--symbols ${text}`);
    expect(hint).toContain('BTCUSDT');
  });

  it.each(['../x', '/etc/passwd', '..', '.', 'a\\b', 'a\0b', '%2e%2e', '!../x', '!', 'X'.repeat(101)])(
    '%j is not a symbol',
    async (word) => {
      const [message] = await refusal(['BTCUSDT', word]);
      expect(message).toBe(`--symbols: ${JSON.stringify(word)} is not a symbol`);
    },
  );

  it.each([
    ['BTC/USDT', 'BTCUSDT'],
    ['btc/usdt:usdt', 'BTCUSDT'],
    ['BTC/USD:BTC', 'BTCUSD'],
    ['!BTC/USDT,all', ''],
    ['BTCUSDT ETHUSDT', 'BTCUSDT,ETHUSDT'],
    ['BTCUSDT  ETHUSDT,BNBUSDT', 'BTCUSDT,ETHUSDT,BNBUSDT'],
  ])('%s of other tools means %s', async (word, meant) => {
    expect((await symbolsOption(word, '--symbols').patterns()).names.join(',')).toBe(meant);
  });

  it.each([
    ['btcusdt', 'BTCUSDT'],
    ['BTC-USDT', 'BTCUSDT'],
    ['btc_usdt', 'BTCUSDT'],
    ['BTC', 'BTCUSDT'],
    ['eth', 'ETHUSDT'],
    ['btcusdt-240329', 'BTCUSDT_240329'],
    ['币安人生', '币安人生USDT'],
    ['b?cusd?', 'BTCUSDC,BTCUSDT'],
  ])('%s means %s, which the archive has', async (word, meant) => {
    expect((await symbols([word])).join(',')).toBe(meant);
  });

  it('an asset means the perpetual contract of a coin-margined market, and one symbol per market', () => {
    expect(meantNames(['BTC', 'eth'], ['BTCUSD_240329', 'BTCUSD_PERP', 'ETHUSD_PERP', 'ETHUSDT'])).toEqual([
      'BTCUSD_PERP',
      'ETHUSDT',
      'ETHUSD_PERP',
    ]);
    // Two symbols with the same letters: none is meant.
    expect(meantNames(['abusdt'], ['AB_USDT', 'ABUSDT'])).toEqual(['abusdt']);
    expect(meantNames(['ABUSDT'], ['AB_USDT', 'ABUSDT'])).toEqual(['ABUSDT']);
  });

  it('a name that the archive does not have is refused with the nearest one', async () => {
    const [message, hint] = await refusal(['BTCUSTD', 'btcusdd', 'ETHUSDT']);
    expect(message).toBe('the archive has no BTCUSTD, btcusdd in um klines');
    expect(hint).toBe('did you mean BTCUSDT?');
    const [, examples] = await refusal(['WHATEVER']);
    expect(examples).toBe('for example BNBUSDT, BTCUSDC, BTCUSDT; cryptodl list symbols shows all');
  });

  it('many unknown names are counted, not all shown', async () => {
    const unknown = Array.from({ length: 9 }, (_, index) => `NOPE${index}`);
    expect((await refusal(unknown))[0]).toBe(
      'the archive has no NOPE0, NOPE1, NOPE2, NOPE3, NOPE4 and 4 more in um klines',
    );
  });

  it('globs and exclusions that match nothing are named in warnings', async () => {
    const { symbols: chosen, warnings } = await select(['ETH*', 'XX*', 'Y?', '!BUSD*', '!NOPE', '!Z*']);
    expect(chosen).toEqual(['ETHBTC', 'ETHUSDT']);
    expect(warnings).toEqual([
      `--symbols XX*, Y?, !NOPE, !Z* matches none of the ${AVAILABLE.length} symbols of um klines`,
    ]);
  });

  it('with --skip-unknown, unknown names are skipped with a warning, but not all names', async () => {
    expect(await select(['BTCUSDT', 'NOPE'], [], noLists, true)).toEqual({
      symbols: ['BTCUSDT'],
      warnings: ['the archive has no NOPE in um klines: left out'],
    });
    await expect(select(['NOPE', 'XX*'], [], noLists, true)).rejects.toThrow(
      `--symbols NOPE, XX* matches none of the ${AVAILABLE.length} symbols of um klines`,
    );
  });

  it('globs and exclusions that leave nothing are refused', async () => {
    expect((await refusal(['DOGE*']))[0]).toBe(
      `--symbols DOGE* matches none of the ${AVAILABLE.length} symbols of um klines`,
    );
    expect((await refusal(['ETH*', '!*']))[0]).toBe(
      `--symbols ETH*, !* matches none of the ${AVAILABLE.length} symbols of um klines`,
    );
  });
});

describe('--quote', () => {
  it('keeps pairs with that quote, also delivery, perpetual and settled ones', async () => {
    expect(await symbols(['all'], ['USDT'])).toEqual([
      'BNBUSDT',
      'BTCUSDT',
      'BTCUSDT_240329',
      'BUSDUSDT',
      'CVCUSDTSETTLED',
      'ETHUSDT',
      'ICPUSDT_SETTLED1',
      '币安人生USDT',
    ]);
    const perpetual = await patternsOf(['all']);
    expect(
      selectSymbols(perpetual, ['USD'], ['BTCUSD_PERP', 'ETHUSD_240329', 'BTCUSDT'], {
        what: 'cm klines',
      }),
    ).toEqual(['BTCUSD_PERP', 'ETHUSD_240329']);
  });

  it('takes several', async () => {
    expect(await symbols(['all'], ['BTC', 'USDC'])).toEqual(['BTCUSDC', 'ETHBTC']);
  });

  it('that matches nothing is refused', async () => {
    expect((await refusal(['ETH*'], ['TRY']))[0]).toContain(
      '--symbols ETH* with --quote TRY matches none of',
    );
  });
});

it('without a listing exact names can be chosen, and nothing else', async () => {
  const names = await patternsOf(['BTCUSDT', 'NEWUSDT', '!NEW*']);
  expect(namesOnly(names, ['USDT'])).toEqual(['BTCUSDT']);
  expect(namesOnly(await patternsOf(['BTC*']), [])).toBeUndefined();
  expect(namesOnly(await patternsOf(['all']), [])).toBeUndefined();
});
