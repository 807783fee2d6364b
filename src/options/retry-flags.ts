/** Flags about requests: how many at once, retries, the breaker, timeouts. */
import { durationText } from '../model/units.js';
import { PRESETS, readPresetWords, STRATEGIES } from '../source/names.js';
import { EXAMINED, oneOf, ONLINE } from './flag-spec.js';
import type { FlagRows } from './flag-spec.js';
import * as parse from './parsers.js';

const presets = readPresetWords();

/** `vision 2 × 100ms` */
function presetText(name: (typeof PRESETS)[number]): string {
  const { retries, baseDelayMs } = presets[name];
  return `${name} ${retries} × ${durationText(baseDelayMs)}`;
}

export const RETRY_FLAGS = {
  concurrency: {
    group: 'Network',
    verbs: [...ONLINE, 'doctor'],
    value: 'N',
    doc: 'objects in flight: a number, auto or auto:MAX',
    parse: parse.concurrency,
    default: 'auto',
    defaultOf: { metrics: 'auto:10' },
    aka: ['c', 'j', 'n', 'w', 'workers', 'threads', 'jobs', 'parallel', 'max-workers'],
  },
  'retry-preset': {
    group: 'Network',
    verbs: [...ONLINE, 'doctor'],
    value: 'NAME',
    doc: `retries and back-off together: ${PRESETS.map(presetText).join('; ')}`,
    ...oneOf(PRESETS),
    default: 'vision',
    defaultOf: { metrics: 'metrics' },
  },
  retries: {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'quick extra tries per request, whatever the preset says',
    parse: parse.integer(0),
    example: '2',
    aka: ['retry', 'max-retries', 'attempts'],
  },
  'retry-delay': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'base of the back-off, whatever the preset says',
    parse: parse.duration,
    unit: 'Ms',
    example: '100ms',
  },
  'retry-factor': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'X',
    doc: 'by how much each step of the back-off is longer than the one before, whatever the preset says; fixed, linear and decorrelated have none',
    parse: parse.factor,
    example: '2',
    aka: ['retry-multiplier', 'backoff-factor'],
  },
  'retry-max-delay': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'cap of the back-off, whatever the preset says',
    parse: parse.duration,
    unit: 'Ms',
    example: '10s',
    aka: ['max-delay', 'backoff-max'],
  },
  'retry-strategy': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'NAME',
    doc: 'back-off: fixed, linear, exponential, or exponential with full, equal or decorrelated jitter (default: full)',
    ...oneOf(STRATEGIES),
    example: 'equal',
  },
  jobs: {
    group: 'Network',
    verbs: ['run'],
    value: 'N',
    doc: 'jobs side by side; jobs of one lake run one after the other in their order, and limits hold for all jobs together',
    parse: parse.integer(1),
    default: '1',
    aka: ['j', 'parallel', 'workers'],
  },
  'breaker-open': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'how long a failing host is left alone',
    parse: parse.duration,
    unit: 'Ms',
    default: '30s',
  },
  'breaker-failures': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'failures in a row after which a host is left alone',
    parse: parse.integer(1),
    default: '5',
  },
  'breaker-successes': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'successes in a row after which a host that was left alone gets all requests again',
    parse: parse.integer(1),
    default: '3',
  },
  'connect-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'DNS, TCP and TLS',
    parse: parse.duration,
    unit: 'Ms',
    default: '5s',
  },
  'headers-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'request sent to headers received',
    parse: parse.duration,
    unit: 'Ms',
    default: '15s',
    defaultOf: { doctor: '5s' },
  },
  'idle-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'silence within a body',
    parse: parse.duration,
    unit: 'Ms',
    default: '10s',
    defaultOf: { doctor: '5s' },
  },
  'total-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'one attempt; one second is added per 16 KiB of body',
    parse: parse.duration,
    unit: 'Ms',
    default: '60s',
    defaultOf: { doctor: '10s' },
    aka: ['timeout'],
  },
  'max-wait': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'longest wait for a limit or a failing host',
    parse: parse.duration,
    unit: 'Ms',
    default: '1h',
  },
  'blocked-wait': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'how long a host whose firewall refuses this address (403) is left alone, before it is asked once more',
    parse: parse.duration,
    unit: 'Ms',
    default: '60s',
  },
} as const satisfies FlagRows;
