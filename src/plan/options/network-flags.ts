/** Flags about the network: requests at once, retries, timeouts, limits, sockets, proxy, addresses of hosts. */
import * as parse from './parsers.js';
import { readExchangeWords, PRESETS, readPresetWords, STRATEGIES } from '../../exchange/names.js';
import { count, duration, file, LIST, oneOf, section, takes, timeout } from './flag-spec.js';
import { proxy, redis, region, url } from './addresses.js';
import { durationText } from '../../model/units.js';

const exchange = readExchangeWords();

const address = takes('URL', url);

/** The number of objects in flight: fixed, or adapted up to a maximum. */
export type ConcurrencyChoice =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

/** The maximum of `--concurrency auto`. */
export const MOST_AT_ONCE = 128;

/** `50`, `auto` or `auto:64`. */
export const concurrency = parse.parser<ConcurrencyChoice>(
  'a number from 1 to 1024, auto or auto:MAX',
  ['50', 'auto:64'],
  (value) => {
    const [, auto, max = String(MOST_AT_ONCE), fixed] = /^(?:(auto)(?::(\d+))?|(\d+))$/.exec(value) ?? [];
    const number = parse.within(1, 1024, Number(fixed ?? max));
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

export const NETWORK_FLAGS = {
  ...section({ group: 'Network', isCarried: true })({
    concurrency: takes('N', concurrency)('objects at the same time; a number, auto or auto:MAX', {
      default: 'auto',
      aka: ['c', 'j', 'w', 'workers', 'threads', 'parallel', 'max-workers', 'transfers'],
    }),
    'retry-preset': oneOf('NAME', PRESETS)(
      `preset for retries and back-off (retries × base delay): ${PRESETS.map(presetText).join('; ')}`,
      { default: 'vision' },
    ),
    retries: {
      value: 'N',
      doc: 'retries per request',
      parse: parse.integer(0),
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
      parse: parse.factor,
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
    'request-interval': duration(
      'minimum time between two requests of a bucket; the limits of the exchange still apply',
    ),
    'requests-per-minute': {
      value: 'N',
      doc: 'maximum requests of a bucket per minute; the limits of the exchange still apply',
      parse: parse.integer(1, undefined, 600),
    },
    limits: {
      ...LIST,
      isMap: true,
      doc: `limits of buckets below those of the exchange (${Object.keys(exchange.limits).join(', ')}), separated by commas; in a file: limits: { archive: 100/s, futuresData: 800/5m }`,
      parse: parse.limit(exchange.limits),
    },
    priority: oneOf('LEVEL', ['high', 'normal', 'low'])(
      'order of jobs that wait for the same rate limit or in a queue: high, normal or low',
      { default: 'normal' },
    ),
    bwlimit: takes('SIZE', parse.byteRate)('maximum bytes per second of all connections; at least 1kB', {
      unit: 'BytesPerSecond',
      aka: ['limit-rate', 'max-speed', 'bandwidth'],
    }),
    'pool-limit': count('maximum sockets of the process; further requests wait'),
    'pool-limit-per-host': count('maximum sockets per host; further requests wait', {
      unset: 'two per object in flight, plus 8',
    }),
    'keep-alive': duration('time that an idle socket stays open; with 0 each request opens a new socket', {
      default: '30s',
    }),
    http2: 'use HTTP/2 where the host supports it',
    proxy: {
      isCarried: false,
      value: 'URL',
      list: 'comma',
      doc: 'proxy for hosts not in NO_PROXY; http, https, socks5, or socks5h if it resolves the names; several are separated by commas, or are lines of @FILE, and share the requests; the value none turns the proxy off',
      parse: proxy,
      unset: 'HTTPS_PROXY, HTTP_PROXY, ALL_PROXY',
      aka: ['x'],
    },
    redis: takes('URL', redis)(
      'Redis server that several machines share: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS; needs the package ioredis',
      { isCarried: false },
    ),
    'egress-group': takes('NAME', parse.keyName('office'))(
      'share the REST limits and all bans with the programs of this group on other machines behind the same public address; needs --redis',
      { isCarried: false },
    ),
    'ca-file': file('additional trusted certificates (PEM)', { aka: ['cacert', 'ca-bundle'] }),
    'archive-url': address('address of the archive', { default: exchange.hosts.archive }),
    'listing-url': address('address of the listing', {
      unset: `${exchange.hosts.listing}, or --archive-url if given`,
      derive: ({ archiveUrl, hosts }) => (archiveUrl === hosts.archive ? hosts.listing : archiveUrl),
    }),
    'fallback-url': address('second address of the archive; used after too many failures of the first', {
      unset: `${exchange.hosts.origin}, unless --archive-url is given`,
      derive: ({ archiveUrl, hosts }) => (archiveUrl === hosts.archive ? hosts.origin : undefined),
    }),
    'fapi-url': address('address of REST for USD-margined futures', { default: exchange.hosts.fapi }),
    'dapi-url': address('address of REST for coin-margined futures', { default: exchange.hosts.dapi }),
    'spot-url': address(
      `address of REST for spot; if the default refuses your location, ${exchange.hosts.spotPublic} is used`,
      { default: exchange.hosts.spot },
    ),
  }),
  ...section({ group: 'Network' })({
    's3-endpoint': address('address of the S3 server of a lake in a bucket (--out s3://bucket/folder)', {
      unset: 'AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile of AWS, or AWS itself',
      aka: ['endpoint-url', 'endpoint'],
    }),
    's3-region': takes('NAME', region)('region of the bucket of the lake', {
      unset: 'AWS_REGION, AWS_DEFAULT_REGION, the profile of AWS, or us-east-1',
      aka: ['region'],
    }),
  }),
};
