/** The command object of `sql`: flags, help and what it does. */
import { OF_QUERY, READER_FLAGS, SELECT_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineReader } from '../../run/verb/verb.js';

export const sqlVerb = defineReader({
  name: 'sql',
  operand: '[query]',
  doc: 'query the lake in SQL; a query is one SELECT over views like um_klines, given as text, as @FILE, or as - for stdin',
  exits: { ...BASE_EXITS, 1: 'fatal; for example a damaged file of the lake' },
  examples: [
    "cryptodl sql 'SHOW TABLES'",
    "cryptodl sql 'SELECT symbol, max(high) FROM um_klines GROUP BY symbol'",
    'cryptodl sql --views > views.sql',
  ],
  aka: ['query'],
  flags: [...SELECT_FLAGS, 'views', 'out'],
  moreFlags: [...READER_FLAGS, 'skip-unknown', 'csv', 'json'],
  meanings: OF_QUERY,
  isReader: true,
  act: async (command) => (await import('./sql.js')).sql(command),
});
