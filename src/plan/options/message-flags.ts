/** Flags about messages, logs and the sources of options. */
import { COUNT, FILE, oneOf, section } from './flag-spec.js';
import { secretUrl, endpoint, promFile } from './addresses.js';

export const MESSAGE_FLAGS = {
  ...section({ group: 'Messages' })({
    json: {
      doc: 'print NDJSON; an object per event, finding, item, row or file, then a summary, if there is one; decimals, times and integers above 2^53 are text',
    },
    last: {
      doc: 'number of runs to list',
      ...COUNT,
      default: '20',
    },
    progress: {
      value: 'HOW',
      doc: 'progress: auto, bar, plain, json or none',
      ...oneOf(['auto', 'bar', 'plain', 'json', 'none']),
      default: 'auto',
    },
    quiet: {
      short: 'q',
      doc: 'print only problems and results',
      aka: ['silent'],
    },
    ping: {
      value: 'URL',
      doc: 'address to request after a success; URL/start is requested at the start of the run, and URL/fail after a failure',
      parse: secretUrl('https://hc-ping.com/your-uuid'),
    },
    'alert-webhook': {
      value: 'URL',
      doc: 'address for a POST of JSON after a run with alerts, with an exit code other than 0, or of a lake that lacks data which a command may bring',
      parse: secretUrl('https://hooks.example.com/your-id'),
    },
    'prometheus-port': {
      value: '[HOST:]PORT',
      doc: 'serve metrics for Prometheus at /metrics during the run; without HOST only to this machine',
      parse: endpoint,
    },
    'prometheus-textfile': {
      value: 'FILE',
      doc: 'write metrics for the textfile collector of node_exporter to this file at the end of the run; its name ends in .prom',
      parse: promFile,
    },
    'debug-dump': {
      doc: 'write a debug dump (JSON) to this file at the end of the run',
      ...FILE,
    },
    'log-file': {
      doc: 'append a structured log to this file',
      ...FILE,
    },
    'log-level': {
      value: 'LEVEL',
      doc: 'log: trace, debug, info, warn or error; without --log-file, a level other than info prints the log to stderr',
      ...oneOf(['trace', 'debug', 'info', 'warn', 'error']),
      default: 'info',
    },
  }),
  ...section({ group: 'Options' })({
    config: {
      doc: 'YAML or JSON file with flag names as keys',
      ...FILE,
    },
    'print-options': {
      doc: 'print options with their origins, and do nothing else',
    },
  }),
};
