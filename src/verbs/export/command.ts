/** The command object of `export`: flags, help and what it does. */
import { OF_QUERY, READER_FLAGS, SELECT_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const exportVerb = defineVerb({
  name: 'export',
  operand: '[program]',
  choices: ['freqtrade', 'tardis', 'lean', 'csv', 'nautilus-loader'],
  doc: 'write the lake for freqtrade, tardis, lean, csv or nautilus-loader; for nautilus-loader, print a Python script; files that are up to date stay',
  exits: {
    ...BASE_EXITS,
    3: 'try later; files of the lake changed during the export',
    4: 'not exported; a file that export did not write, a file of the lake that cannot be read, or with --require-complete: data that the lake lacks',
    6: 'locked; another export writes to the folder',
  },
  examples: [
    'cryptodl export freqtrade --target user_data/data/binance -s BTCUSDT,ETHUSDT',
    'cryptodl export tardis --target tardis -s BTCUSDT -d 7',
    'cryptodl export csv --target csv -i 1h --columns date=open_time,close',
    'cryptodl export nautilus-loader -m um -i 1m -s BTCUSDT > load_nautilus.py',
  ],
  aka: ['convert'],
  flags: [...SELECT_FLAGS, 'mark-interval', 'target', 'require-complete', 'out', 'force', 'dry-run', 'json'],
  moreFlags: [
    ...READER_FLAGS,
    'skip-unknown',
    'now',
    'exchange-info',
    'columns',
    'delimiter',
    'time-format',
    'one-file',
  ],
  meanings: OF_QUERY,
  isReader: true,
  lakePart: 'selected',
  act: async (command) => (await import('./export.js')).exportFor(command),
});
