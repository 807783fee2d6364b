/** The command object of `report`: flags, help and what it does. */
import { BUCKET_FLAGS, OF_HELD_FILES, SELECT_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineReader } from '../../run/verb/verb.js';

export const reportVerb = defineReader({
  name: 'report',
  doc: 'write one HTML file about the lake and its last run; it has charts, failures, gaps and a heat-map, and needs no network',
  exits: BASE_EXITS,
  examples: [
    'cryptodl report',
    'cryptodl report -o /srv/lake --html /srv/www/lake.html',
    "cryptodl report -m um --dataset klines -s '*USDT' --months 6",
  ],
  aka: ['page', 'dashboard'],
  flags: [...SELECT_FLAGS, 'run', 'html', 'out', 'force'],
  moreFlags: [...BUCKET_FLAGS, 'skip-unknown', 'now', 'format', 'json', 'quiet', 'config', 'print-options'],
  meanings: { ...OF_HELD_FILES, html: { unset: 'cryptodl-report.html' } },
  isReader: true,
  lakePart: 'selected',
  act: async (command) => (await import('./report.js')).report(command),
});
