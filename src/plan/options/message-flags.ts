/** Flags about messages, logs and the sources of options. */
import {
  COUNT,
  DOWNLOADS,
  DOWNLOADS_AND_JOBS,
  EXAMINED,
  FILE,
  oneOf,
  ONLINE,
  ONLINE_AND_JOBS,
  section,
  TELLING,
} from './flag-spec.js';
import { secretUrl, endpoint, promFile } from './addresses.js';

/** Verbs that answer a question, and send no request of a download. */
const ANSWERING = [...TELLING, 'status', 'schema', 'sql', 'report'] as const;

export const MESSAGE_FLAGS = {
  ...section({ group: 'Messages', usual: [], verbs: DOWNLOADS_AND_JOBS })({
    json: {
      verbs: [...ONLINE_AND_JOBS, ...ANSWERING, 'bars'],
      usual: [...ONLINE_AND_JOBS, ...TELLING, 'status', 'bars'],
      doc: 'print NDJSON; an object per event, finding, item, row or file, then a summary, if there is one; decimals, times and integers above 2^53 are text',
    },
    last: {
      verbs: ['runs'],
      usual: ['runs'],
      doc: 'number of runs to list',
      ...COUNT,
      default: '20',
    },
    progress: {
      verbs: DOWNLOADS_AND_JOBS,
      usual: ['run'],
      value: 'HOW',
      doc: 'progress: auto, bar, plain, json or none (--no-progress)',
      ...oneOf(['auto', 'bar', 'plain', 'json', 'none']),
      default: 'auto',
    },
    quiet: {
      short: 'q',
      verbs: [...EXAMINED, 'sql', 'check', 'coverage', 'report', 'plot', 'bars', 'export', 'universe'],
      usual: EXAMINED,
      doc: 'print only problems and results',
      aka: ['silent'],
    },
    ping: {
      verbs: DOWNLOADS,
      value: 'URL',
      doc: 'address to request after a success; URL/start is requested at the start of the run, and URL/fail after a failure',
      parse: secretUrl('https://hc-ping.com/your-uuid'),
    },
    'alert-webhook': {
      verbs: DOWNLOADS,
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
      verbs: ONLINE_AND_JOBS,
      doc: 'append a structured log to this file',
      ...FILE,
    },
    'log-level': {
      verbs: ONLINE_AND_JOBS,
      value: 'LEVEL',
      usual: DOWNLOADS_AND_JOBS,
      doc: 'log: trace, debug, info, warn or error; without --log-file, a level other than info prints the log to stderr',
      ...oneOf(['trace', 'debug', 'info', 'warn', 'error']),
      default: 'info',
    },
  }),
  ...section({ group: 'Options', usual: [] })({
    config: {
      verbs: [...ONLINE, ...ANSWERING, 'plot', 'serve'],
      usual: [...ONLINE, 'coverage', 'doctor'],
      doc: 'YAML or JSON file with flag names as keys',
      ...FILE,
    },
    'print-options': {
      verbs: [...ONLINE_AND_JOBS, ...ANSWERING, 'plot', 'serve'],
      usual: ['run', 'verify', 'coverage', 'doctor'],
      doc: 'print options with their origins, and do nothing else',
    },
  }),
};
