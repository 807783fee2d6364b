/** The command object of `serve`: flags, help and what it does. */
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineVerb } from '../../run/verb/verb.js';

export const serveVerb = defineVerb({
  name: 'serve',
  operand: '<directory>',
  doc: 'serve a folder of downloaded zips inside your organisation; uses HTTP and the protocol of the archive',
  exits: BASE_EXITS,
  examples: [
    'cryptodl serve ./raw --port 8090',
    'cryptodl vision -s BTCUSDT -d 7 -f zip -o ./raw',
    'cryptodl vision -s BTCUSDT -d 7 --archive-url http://127.0.0.1:8090',
  ],
  aka: ['server'],
  flags: ['host', 'port', 'config', 'print-options'],
  actOffline: async ({ operand = '', resolved, io }) =>
    (await import('./serve.js')).serve(operand, resolved.options, io),
});
