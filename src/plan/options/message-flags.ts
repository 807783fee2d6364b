/** Flags about messages, logs and the sources of options. */
import { count, file, oneOf, section, takes } from './flag-spec.js';
import { secretUrl } from './addresses.js';
import { parser } from './parsers.js';

/** `9464`, `0.0.0.0:9464`, `[::]:9464`, or the address with these: `http://0.0.0.0:9464/metrics`. The second example is for other machines. */
export const endpoint = parser(
  'a port from 1 to 65535 with or without an address in front',
  ['9464', '0.0.0.0:9464'],
  (typed) => {
    const value = typed
      .replace(/^https?:\/\//, '')
      .replace(/\/.*/s, '')
      .replace(/^:/, '0.0.0.0:');
    const [, bracketed, name, digits] = /^(?:(?:\[([\da-f:.]+)\]|([\w.-]+)):)?(\d{1,5})$/i.exec(value) ?? [];
    const port = Number(digits);
    return port >= 1 && port <= 65_535 ? { host: bracketed ?? name ?? '127.0.0.1', port } : undefined;
  },
);

/** The path of a file for the textfile collector. node_exporter reads only files of this ending. */
export const promFile = parser('a file with the ending .prom', ['cryptodl.prom'], (path) =>
  /[^\\/]\.prom$/.test(path) ? path : undefined,
);

export const MESSAGE_FLAGS = {
  ...section({ group: 'Messages' })({
    json: 'print NDJSON; an object per event, finding, item, row or file, then a summary, if there is one; decimals, times and integers above 2^53 are text',
    last: count('number of runs to list', { default: '20' }),
    progress: oneOf('HOW', ['auto', 'bar', 'plain', 'json', 'none'])(
      'progress: auto, bar, plain, json or none',
      { default: 'auto' },
    ),
    quiet: { short: 'q', doc: 'print only problems and results', aka: ['silent'] },
    ping: takes(
      'URL',
      secretUrl('https://hc-ping.com/your-uuid'),
    )(
      'address to request after a success; URL/start is requested at the start of the run, and URL/fail after a failure',
    ),
    'alert-webhook': takes(
      'URL',
      secretUrl('https://hooks.example.com/your-id'),
    )(
      'address for a POST of JSON after a run with alerts, with an exit code other than 0, or of a lake that lacks data which a command may bring',
    ),
    'prometheus-port': takes(
      '[HOST:]PORT',
      endpoint,
    )('serve metrics for Prometheus at /metrics during the run; without HOST only to this machine'),
    'prometheus-textfile': takes(
      'FILE',
      promFile,
    )(
      'write metrics for the textfile collector of node_exporter to this file at the end of the run; its name ends in .prom',
    ),
    'debug-dump': file('write a debug dump (JSON) to this file at the end of the run'),
    'log-file': file('append a structured log to this file'),
    'log-level': oneOf('LEVEL', ['trace', 'debug', 'info', 'warn', 'error'])(
      'log: trace, debug, info, warn or error; without --log-file, a level other than info prints the log to stderr',
      { default: 'info' },
    ),
  }),
  ...section({ group: 'Options' })({
    config: file('YAML or JSON file with flag names as keys'),
    'print-options': 'print options with their origins, and do nothing else',
  }),
};
