/** The command object of `schema`: flags, help and what it does. */
import { MARKETS } from '../../exchange/names.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const schemaVerb = defineVerb({
  name: 'schema',
  operand: '[dataset]',
  doc: 'print the columns of a dataset; with types, units and meaning, and the quirks of its files',
  exits: { 0: 'done', 2: BASE_EXITS[2] },
  examples: [
    'cryptodl schema klines',
    'cryptodl schema metrics -m um',
    'cryptodl schema klines -m cm --json',
  ],
  aka: ['columns', 'describe', 'fields'],
  flags: ['market', 'json', 'config', 'print-options'],
  meanings: {
    market: {
      doc: 'spot, um (USD-margined futures), cm (coin-margined futures) or option',
      choices: MARKETS,
    },
  },
  act: async (command) => (await import('./schema.js')).schema(command),
});
