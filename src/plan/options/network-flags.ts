/** Flags about the network: limits, sockets, proxy, addresses of hosts. */
import * as numbers from './numbers.js';
import * as parse from './parsers.js';
import { readExchangeWords } from '../../exchange/names.js';
import { count, duration, file, kind, LIST, oneOf, section } from './flag-spec.js';
import { proxy, redis, region, url } from './addresses.js';
import { limit } from './limit.js';

const exchange = readExchangeWords();

const address = kind({ value: 'URL', parse: url });

export const NETWORK_FLAGS = {
  ...section({ group: 'Network', isCarried: true })({
    'request-interval': duration(
      'minimum time between two requests of a bucket; the limits of the exchange still apply',
    ),
    'requests-per-minute': {
      value: 'N',
      doc: 'maximum requests of a bucket per minute; the limits of the exchange still apply',
      parse: numbers.integer(1, undefined, 600),
    },
    limits: {
      ...LIST,
      isMap: true,
      doc: `limits of buckets below those of the exchange (${Object.keys(exchange.limits).join(', ')}), separated by commas; in a file: limits: { archive: 100/s, futuresData: 800/5m }`,
      parse: limit(exchange.limits),
    },
    priority: oneOf('LEVEL', ['high', 'normal', 'low'])(
      'order of jobs that wait for the same rate limit or in a queue: high, normal or low',
      { default: 'normal' },
    ),
    bwlimit: {
      value: 'SIZE',
      doc: 'maximum bytes per second of all connections; at least 1kB',
      parse: numbers.byteRate,
      unit: 'BytesPerSecond',
      aka: ['limit-rate', 'max-speed', 'bandwidth'],
    },
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
    redis: {
      isCarried: false,
      value: 'URL',
      doc: 'Redis server that several machines share: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS; needs the package ioredis',
      parse: redis,
    },
    'egress-group': {
      isCarried: false,
      value: 'NAME',
      doc: 'share the REST limits and all bans with the programs of this group on other machines behind the same public address; needs --redis',
      parse: parse.keyName('office'),
    },
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
    's3-region': {
      value: 'NAME',
      doc: 'region of the bucket of the lake',
      parse: region,
      unset: 'AWS_REGION, AWS_DEFAULT_REGION, the profile of AWS, or us-east-1',
      aka: ['region'],
    },
  }),
};
