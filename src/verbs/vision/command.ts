/** The command object of `vision`: flags, help and what it does. */
import {
  ARCHIVED,
  DOWNLOAD_FLAGS,
  FORM_FLAGS,
  OBJECT_FLAGS,
  SAVE_FLAGS,
} from '../../plan/options/flag-sets.js';
import { RUN_EXITS } from '../../plan/options/verb-spec.js';
import { defineRunVerb } from '../../run/verb/verb.js';

export const visionVerb = defineRunVerb({
  name: 'vision',
  doc: 'download from the Binance Vision archive into the lake',
  exits: RUN_EXITS,
  examples: [
    'cryptodl vision -s BTCUSDT,ETHUSDT -d 7',
    "cryptodl vision -m spot -i 1m,1h -s '*USDT' --from 2024-01-01 --to 2024-03-31",
    'cryptodl vision --dataset metrics -s @universe.txt --months 6 -f csv',
  ],
  aka: ['download', 'fetch', 'get', 'sync', 'klines', 'ohlcv', 'copy', 'download-data', 'fetch-ohlcv'],
  flags: [...SAVE_FLAGS, 'fill', 'partition', 'max-bytes', 'retries', 'bwlimit'],
  moreFlags: [...DOWNLOAD_FLAGS, ...OBJECT_FLAGS, ...FORM_FLAGS, 'skip-unknown', 'exact'],
  meanings: ARCHIVED,
  act: async (command) => (await import('../../run/download.js')).download({ ...command, verb: 'vision' }),
});
