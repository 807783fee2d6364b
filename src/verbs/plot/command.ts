/** The command object of `plot`: flags, help and what it does. */
import { OF_QUERY, RANGE_FLAGS, READER_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineReader } from '../../run/verb/verb.js';

export const plotVerb = defineReader({
  name: 'plot',
  operand: '[symbol]',
  doc: 'draw candles and volume of a symbol, or a column of a dataset, from the lake; on the terminal, or as an HTML file',
  exits: { ...BASE_EXITS, 2: 'usage; for example a symbol that the lake does not have' },
  examples: [
    'cryptodl plot BTCUSDT',
    'cryptodl plot BTCUSDT -i 1h -d 30',
    'cryptodl plot BTCUSDT --column last_funding_rate --html funding.html',
  ],
  aka: ['chart', 'graph', 'draw'],
  flags: [...RANGE_FLAGS, 'market', 'dataset', 'interval', 'column', 'html', 'out', 'force'],
  moreFlags: [...READER_FLAGS, 'symbols', 'now'],
  meanings: {
    ...OF_QUERY,
    html: {
      doc: 'write a page with a zoomable chart instead; an existing file is replaced only if it is a plot',
    },
  },
  isReader: true,
  lakePart: 'selected',
  act: async (command) => (await import('./plot.js')).plot(command),
});
