/** The command object of `vision`: flags, help and what it does. */
import {
  ARCHIVED,
  BUCKET_FLAGS,
  DOWNLOAD_FLAGS,
  FORM_FLAGS,
  OBJECT_FLAGS,
  PLAN_FLAGS,
  RANGE_FLAGS,
  SERIES_FLAGS,
} from '../../plan/options/flag-sets.js';
import { RUN_EXITS } from '../../plan/options/verb-spec.js';
import { verbCommand } from '../../run/verb/verb.js';

export const visionVerb = verbCommand({
  name: 'vision',
  doc: 'download from the Binance Vision archive into the lake',
  exits: RUN_EXITS,
  examples: [
    'cryptodl vision -s BTCUSDT,ETHUSDT -d 7',
    "cryptodl vision -m spot -i 1m,1h -s '*USDT' --from 2024-01-01 --to 2024-03-31",
    'cryptodl vision --dataset metrics -s @universe.txt --months 6 -f csv',
  ],
  aka: ['download', 'fetch', 'get', 'sync', 'klines', 'ohlcv', 'copy', 'download-data', 'fetch-ohlcv'],
  flags: [
    ...SERIES_FLAGS,
    ...RANGE_FLAGS,
    'shard',
    'fill',
    'out',
    'format',
    'partition',
    'force',
    'dry-run',
    'max-bytes',
    'concurrency',
    'retries',
    'bwlimit',
    'json',
    'quiet',
    'log-level',
    'config',
  ],
  moreFlags: [
    ...DOWNLOAD_FLAGS,
    ...OBJECT_FLAGS,
    ...FORM_FLAGS,
    ...BUCKET_FLAGS,
    'skip-unknown',
    'exact',
    'retry-preset',
  ],
  alsoReads: PLAN_FLAGS,
  meanings: ARCHIVED,
  act: async (command) => (await import('../../run/download.js')).download({ ...command, verb: 'vision' }),
});
