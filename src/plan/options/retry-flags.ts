/** Flags about requests: how many at once, retries, the breaker, timeouts. */
import { durationText } from '../../model/units.js';
import { PRESETS, readPresetWords, STRATEGIES } from '../../exchange/names.js';
import { count, duration, oneOf, section, timeout } from './flag-spec.js';
import * as numbers from './numbers.js';
import * as parse from './parsers.js';

/** The number of objects in flight: fixed, or adapted up to a maximum. */
export type Concurrency =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

/** The maximum of `--concurrency auto`. */
export const MOST_AT_ONCE = 128;

/** `50`, `auto` or `auto:64`. */
export const concurrency = parse.parser<Concurrency>(
  'a number from 1 to 1024, auto or auto:MAX',
  ['50', 'auto:64'],
  (value) => {
    const [, auto, max = String(MOST_AT_ONCE), fixed] = /^(?:(auto)(?::(\d+))?|(\d+))$/.exec(value) ?? [];
    const number = numbers.within(1, 1024, Number(fixed ?? max));
    if (number === undefined || (auto ?? fixed) === undefined) return undefined;
    return fixed === undefined ? { kind: 'auto', max: number } : { kind: 'fixed', limit: number };
  },
);

const presets = readPresetWords();

/** `vision 2 × 100ms` */
function presetText(name: (typeof PRESETS)[number]): string {
  const { retries, baseDelayMs } = presets[name];
  return `${name} ${retries} × ${durationText(baseDelayMs)}`;
}

/** The file of `run` sets the preset of each job. */
const FROM_PRESET = { unset: 'from --retry-preset' };

export const RETRY_FLAGS = section({ group: 'Network', isCarried: true })({
  concurrency: {
    value: 'N',
    doc: 'objects at the same time; a number, auto or auto:MAX',
    parse: concurrency,
    default: 'auto',
    aka: ['c', 'j', 'w', 'workers', 'threads', 'parallel', 'max-workers', 'transfers'],
  },
  'retry-preset': oneOf('NAME', PRESETS)(
    `preset for retries and back-off (retries × base delay): ${PRESETS.map(presetText).join('; ')}`,
    { default: 'vision' },
  ),
  retries: {
    value: 'N',
    doc: 'retries per request',
    parse: numbers.integer(0),
    ...FROM_PRESET,
    derive: ({ preset }) => preset.retries,
    aka: ['retry', 'max-retries'],
  },
  'retry-delay': duration('base delay of the back-off', {
    ...FROM_PRESET,
    derive: ({ preset }) => preset.baseDelayMs,
  }),
  'retry-factor': {
    value: 'X',
    doc: 'factor between two steps of the back-off; not used by fixed and linear',
    parse: numbers.factor,
    ...FROM_PRESET,
    derive: ({ preset }) => preset.factor,
  },
  'retry-max-delay': duration('maximum delay of the back-off', {
    ...FROM_PRESET,
    derive: ({ preset }) => preset.maxDelayMs,
  }),
  'retry-strategy': oneOf('NAME', STRATEGIES)(
    'back-off: fixed, linear, exponential, or full: a random delay up to the exponential one',
    { ...FROM_PRESET, derive: ({ preset }) => preset.strategy },
  ),
  jobs: count(
    'number of jobs at the same time; run: jobs of the same lake run one after the other; worker: as many conversions run too; limits apply to all jobs together',
    { isCarried: false, default: '1', aka: ['j', 'parallel', 'workers'] },
  ),
  'breaker-open': duration('time without requests to a host after too many failures', { default: '30s' }),
  'breaker-failures': count('number of consecutive failures after which requests to a host stop', {
    default: '5',
  }),
  'breaker-successes': count('number of consecutive successes after which a host gets all requests again', {
    default: '3',
  }),
  'connect-timeout': timeout('timeout for DNS, TCP and TLS', { default: '5s' }),
  'headers-timeout': timeout('timeout from the request to the response headers', { default: '15s' }),
  'idle-timeout': timeout('timeout without data within a body', { default: '10s' }),
  'total-timeout': timeout('timeout of one attempt; one second is added per 16 KiB of body', {
    default: '60s',
    aka: ['timeout'],
  }),
  'max-wait': duration('maximum wait for a rate limit or a failing host', { default: '1h' }),
  'blocked-wait': duration(
    'time without requests to a host whose firewall refuses this address (403), before one more attempt',
    { default: '60s' },
  ),
});
