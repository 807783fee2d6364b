import { expect, it } from 'vitest';
import { toCryptodlError } from '../../../src/model/errors.js';
import { chooseDatasets, datasetName } from '../../../src/plan/select/select-datasets.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const VENUE = loadBinance();

/** Market, dataset, interval, cadence and provider. */
function choose([
  market = '',
  dataset = '',
  interval = '1m',
  cadence = 'auto',
  provider = 'archive',
]: readonly string[]): string[] {
  const flags = {
    market: market.split(','),
    dataset: dataset.split(','),
    interval: interval.split(','),
    cadence: cadence as 'auto',
  };
  return chooseDatasets(VENUE, flags, provider as 'archive').map(datasetName);
}

it.each([
  [
    ['um,spot', 'klines'],
    ['spot klines 1m', 'um klines 1m'],
  ],
  [
    ['um', 'klines,metrics', '1m,1h'],
    ['um klines 1m', 'um klines 1h', 'um metrics'],
  ],
  [
    ['all', 'metrics'],
    ['um metrics', 'cm metrics'],
  ],
  [['all', 'klines', '1s'], ['spot klines 1s']],
  [['um', 'metrics', '1m', 'auto', 'rest'], ['um metrics']],
] as const)('%j selects %j', (flags, names) => {
  expect(choose(flags)).toEqual(names);
});

it.each([
  [
    ['um', 'nosuch'],
    '--dataset: um has no dataset "nosuch" of the archive; ',
    'cryptodl list datasets shows the markets and sources of each dataset',
  ],
  [['um', 'klines,klinse'], '--dataset: um has no dataset "klinse" of', 'did you mean klines?'],
  [['um', 'all,klinse'], '--dataset: um has no dataset "klinse" of', 'did you mean klines?'],
  [['all', 'klines,klinse'], 'has no dataset "klinse" of', 'did you mean klines?'],
  [['um,spot', 'metrics'], '--dataset: spot has no dataset "metrics"', undefined],
  [['um', 'EOHSummary'], 'has no dataset "EOHSummary"', undefined],
  [['um', 'klines', '1m', 'auto', 'rest'], '"klines" of REST', undefined],
  [['um,spot', 'klines', '1s'], '--interval: um klines has no "1s"; it has 1m, ', undefined],
  [['um', 'all', '7m'], 'has no "7m"; it has ', undefined],
  [['all', 'klines', '1h,7m'], 'has no "7m"; it has ', undefined],
  [['um', 'klines', '5M'], 'has no "5M"; it has ', 'did you mean 5m?'],
  [
    ['um', 'fundingRate', '1m', 'daily'],
    '--cadence daily: um fundingRate exists only monthly',
    'leave --cadence out',
  ],
  [
    ['all', 'metrics', '1m', 'monthly'],
    '--cadence monthly: no selected dataset has it',
    'leave --cadence out',
  ],
] as const)('%j is refused', (flags, message, hint) => {
  let refused;
  try {
    choose(flags);
  } catch (error) {
    refused = toCryptodlError(error);
  }
  expect(refused?.code).toBe('usage');
  expect(refused?.message).toContain(message);
  if (hint !== undefined) expect(refused?.hint).toBe(hint);
});
