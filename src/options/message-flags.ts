/** Flags about messages, logs and the sources of options. */
import { DOWNLOADS, DOWNLOADS_AND_JOBS, EXAMINED, oneOf, ONLINE, ONLINE_AND_JOBS } from './flag-spec.js';
import type { FlagRows } from './flag-spec.js';
import { pingUrl } from './addresses.js';
import * as parse from './parsers.js';

export const MESSAGE_FLAGS = {
  json: {
    group: 'Messages',
    verbs: [...ONLINE_AND_JOBS, 'schema', 'sql', 'coverage', 'doctor'],
    usual: [...ONLINE_AND_JOBS, 'coverage', 'doctor'],
    doc: 'print NDJSON: events, then a summary',
    docOf: {
      verify: 'print NDJSON: an object per finding, then a summary',
      audit: 'print NDJSON: an object per finding, then a summary',
      list: 'print NDJSON: an object per item',
      schema: 'print JSON',
      sql: 'print NDJSON: an object per row; decimals, times and integers above 2^53 are text',
      coverage: 'print NDJSON: an object per series, then a summary',
      doctor: 'print NDJSON: an object per check',
    },
    parse: parse.flag,
  },
  progress: {
    group: 'Messages',
    verbs: DOWNLOADS_AND_JOBS,
    usual: ['run'],
    value: 'HOW',
    doc: 'progress display: auto, bar, plain or none (--no-progress)',
    ...oneOf(['auto', 'bar', 'plain', 'none']),
    default: 'auto',
  },
  quiet: {
    group: 'Messages',
    short: 'q',
    verbs: [...EXAMINED, 'sql'],
    usual: EXAMINED,
    doc: 'print only problems',
    parse: parse.flag,
    aka: ['silent'],
  },
  verbose: {
    group: 'Messages',
    short: 'v',
    verbs: DOWNLOADS_AND_JOBS,
    usual: DOWNLOADS_AND_JOBS,
    doc: 'print a log of each request, retry and decision; the same as --log-level debug',
    parse: parse.flag,
    aka: ['debug', 'vv'],
  },
  ping: {
    group: 'Messages',
    verbs: DOWNLOADS,
    value: 'URL',
    doc: 'address to request after a success; URL/start is requested at the start of the run, and URL/fail after a failure',
    parse: pingUrl,
    example: 'https://hc-ping.com/your-uuid',
    aka: ['healthcheck', 'heartbeat'],
  },
  'log-file': {
    group: 'Messages',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'FILE',
    doc: 'append a structured log to this file',
    parse: parse.text,
    example: 'cryptodl.log',
  },
  'log-level': {
    group: 'Messages',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'LEVEL',
    doc: 'trace, debug, info, warn or error; without --log-file, a level other than info prints the log to stderr',
    ...oneOf(['trace', 'debug', 'info', 'warn', 'error']),
    default: 'info',
  },
  config: {
    group: 'Options',
    verbs: [...ONLINE, 'schema', 'sql', 'coverage', 'serve', 'doctor'],
    usual: [...ONLINE, 'coverage', 'doctor'],
    value: 'FILE',
    doc: 'YAML or JSON file with flag names as keys',
    parse: parse.text,
    example: 'config/vision.example.yaml',
  },
  'print-options': {
    group: 'Options',
    verbs: [...ONLINE_AND_JOBS, 'schema', 'sql', 'coverage', 'serve', 'doctor'],
    usual: ['run', 'verify', 'coverage', 'doctor'],
    doc: 'print options with their origins, and do nothing else',
    parse: parse.flag,
  },
} as const satisfies FlagRows;
