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

/** The file of `run` sets the preset of each job. */
const FROM_PRESET = { unset: 'from --retry-preset', unsetOf: { run: 'from the preset of the job' } };

export const RETRY_FLAGS = {
  concurrency: {
    group: 'Network',
    verbs: [...ONLINE, 'doctor'],
    usual: [...ONLINE.filter((verb) => verb !== 'universe'), 'doctor'],
    value: 'N',
    doc: 'objects at the same time; a number, auto or auto:MAX',
    parse: parse.concurrency,
    default: 'auto',
    defaultOf: { metrics: 'auto:10' },
    aka: ['c', 'j', 'w', 'workers', 'threads', 'jobs', 'parallel', 'max-workers', 'transfers'],
  },
  'retry-preset': {
    group: 'Network',
    verbs: [...ONLINE, 'doctor'],
    value: 'NAME',
    doc: `preset for retries and back-off (retries × base delay): ${PRESETS.map(presetText).join('; ')}`,
    ...oneOf(PRESETS),
    default: 'vision',
    defaultOf: { metrics: 'metrics' },
  },
  retries: {
    group: 'Network',
    verbs: EXAMINED,
    usual: ['vision', 'run', 'retry', 'repair', 'list', 'audit'],
    value: 'N',
    doc: 'retries per request',
    parse: parse.integer(0),
    ...FROM_PRESET,
    derive: ({ preset }) => preset.retries,
    example: '2',
    aka: ['retry', 'max-retries', 'attempts'],
  },
  'retry-delay': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'base delay of the back-off',
    parse: parse.duration,
    unit: 'Ms',
    ...FROM_PRESET,
    derive: ({ preset }) => preset.baseDelayMs,
    example: '100ms',
  },
  'retry-factor': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'X',
    doc: 'factor between two steps of the back-off; not used by fixed, linear and decorrelated',
    parse: parse.factor,
    ...FROM_PRESET,
    derive: ({ preset }) => preset.factor,
    example: '2',
    aka: ['retry-multiplier', 'backoff-factor'],
  },
  'retry-max-delay': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'maximum delay of the back-off',
    parse: parse.duration,
    unit: 'Ms',
    ...FROM_PRESET,
    derive: ({ preset }) => preset.maxDelayMs,
    example: '10s',
    aka: ['max-delay', 'backoff-max'],
  },
  'retry-strategy': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'NAME',
    doc: 'back-off: fixed, linear, exponential, or exponential with full, equal or decorrelated jitter',
    ...oneOf(STRATEGIES),
    ...FROM_PRESET,
    derive: ({ preset }) => preset.strategy,
    example: 'equal',
  },
  jobs: {
    group: 'Network',
    verbs: ['run', 'worker'],
    usual: ['run', 'worker'],
    value: 'N',
    doc: 'number of jobs at the same time; jobs of the same lake run one after the other, and limits apply to all jobs together',
    docOf: {
      worker:
        'number of jobs of the queue at the same time, and as many conversions; limits and --concurrency apply to all of them together',
    },
    parse: parse.integer(1),
    default: '1',
    defaultOf: { worker: '8' },
    aka: ['j', 'parallel', 'workers'],
  },
  'breaker-open': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'time without requests to a host after too many failures',
    parse: parse.duration,
    unit: 'Ms',
    default: '30s',
  },
  'breaker-failures': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'number of consecutive failures after which requests to a host stop',
    parse: parse.integer(1),
    default: '5',
  },
  'breaker-successes': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'number of consecutive successes after which a host gets all requests again',
    parse: parse.integer(1),
    default: '3',
  },
  'connect-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    usual: ['doctor'],
    value: 'TIME',
    doc: 'timeout for DNS, TCP and TLS',
    parse: parse.timeout,
    unit: 'Ms',
    default: '5s',
  },
  'headers-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'timeout from the request to the response headers',
    parse: parse.timeout,
    unit: 'Ms',
    default: '15s',
    defaultOf: { doctor: '5s' },
  },
  'idle-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'timeout without data within a body',
    parse: parse.timeout,
    unit: 'Ms',
    default: '10s',
    defaultOf: { doctor: '5s' },
  },
  'total-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'timeout of one attempt; one second is added per 16 KiB of body',
    parse: parse.timeout,
    unit: 'Ms',
    default: '60s',
    defaultOf: { doctor: '10s' },
    aka: ['timeout'],
  },
  'max-wait': {
    group: 'Network',
    verbs: EXAMINED,
    usual: ['retry'],
    value: 'TIME',
    doc: 'maximum wait for a rate limit or a failing host',
    parse: parse.duration,
    unit: 'Ms',
    default: '1h',
  },
  'blocked-wait': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'time without requests to a host whose firewall refuses this address (403), before one more attempt',
    parse: parse.duration,
    unit: 'Ms',
    default: '60s',
  },
} as const satisfies FlagRows;
