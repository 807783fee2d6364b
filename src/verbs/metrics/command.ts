/** The command object of `metrics`: flags, help and what it does. */
import { ALL } from '../../exchange/names.js';
import { dataset } from '../../plan/options/exchange-values.js';
import { DOWNLOAD_FLAGS, FORM_FLAGS, SAVE_FLAGS, STATISTICS } from '../../plan/options/flag-sets.js';
import { RUN_EXITS } from '../../plan/options/verb-spec.js';
import { defineRunVerb } from '../../run/verb/verb.js';

export const metricsVerb = defineRunVerb({
  name: 'metrics',
  doc: 'download funding rates, open interest, ratios and basis over REST into the lake; REST has them for USD-margined and coin-margined futures',
  exits: RUN_EXITS,
  examples: [
    'cryptodl metrics -s BTCUSDT,ETHUSDT -d 29',
    'cryptodl metrics -m cm -s BTCUSD_PERP --dataset openInterestHist -i 1h -d 7',
    "cryptodl metrics -s '*USDT' --dataset fundingRate -d 365 --priority high",
  ],
  aka: ['rest'],
  flags: [...SAVE_FLAGS, 'join', 'include-today'],
  moreFlags: [...DOWNLOAD_FLAGS, ...FORM_FLAGS, 'skip-unknown', 'exact'],
  meanings: {
    market: { doc: 'um (USD-margined futures) or cm (coin-margined futures)', choices: ['um', 'cm'] },
    dataset: {
      parse: dataset('rest'),
      choices: ['fundingRate', 'metrics', ...STATISTICS, 'basis', ALL],
      default: ['fundingRate', ...STATISTICS].join(','),
    },
    interval: { default: '5m' },
    format: { doc: 'parquet or csv', choices: ['parquet', 'csv'] },
    concurrency: { default: 'auto:10' },
    'retry-preset': { default: 'metrics' },
  },
  act: async (command) => (await import('../../run/download.js')).download({ ...command, verb: 'metrics' }),
});
