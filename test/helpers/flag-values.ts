/** A value for each flag: its text, and what the text means. */
import { expect } from 'vitest';
import { flagSpec } from '../../src/plan/options/flags.js';
import type { FlagName } from '../../src/plan/options/flags.js';
import { symbolsOption } from '../../src/plan/options/symbols.js';
import { day } from './conversion.js';

const VALUES: Partial<Record<FlagName, [string, unknown]>> = {
  delimiter: ['tab', '\t'],
  'time-format': ['%Y-%m-%d', '%Y-%m-%d'],
  queue: ['night', 'night'],
  'max-waiting': ['50', 50],
  role: ['fetch', 'fetch'],
  market: ['um,spot', ['um', 'spot']],
  days: ['7', 7],
  months: ['7', 7],
  from: ['2024-01-31', expect.objectContaining({ firstDay: day('2024-01-31') })],
  to: ['2024-01-31', expect.objectContaining({ lastDay: day('2024-01-31') })],
  at: ['09:30', 570],
  symbols: ['A1', symbolsOption('A1', '--symbols')],
  every: ['6h', { kind: 'hours', text: '6h', hours: 6 }],
  kind: ['cron', 'cron'],
  'mark-interval': ['1h', ['1h']],
  'wait-for-publication': ['90m', { kind: 'duration', durationMs: 5_400_000 }],
  'alert-webhook': ['https://hooks.example.com/id?x=1', 'https://hooks.example.com/id?x=1'],
  ping: ['https://hc-ping.com/uuid?rid=1', 'https://hc-ping.com/uuid?rid=1'],
  now: ['2026-11-21T08:00:00Z', Date.UTC(2026, 10, 21, 8)],
  format: ['csv', 'csv'],
  prefer: ['daily', 'daily'],
  against: ['rest', 'rest'],
  sample: ['5:1f2e', { count: 5, seed: '1f2e' }],
  partition: ['day', 'day'],
  cadence: ['daily', 'daily'],
  numbers: ['string', 'string'],
  timestamps: ['iso', 'iso'],
  verify: ['none', 'none'],
  revisions: ['only', 'only'],
  'recheck-days': ['3', 3],
  'stale-checksum': ['warn', 'warn'],
  'max-bytes': ['7MB', 7e6],
  by: ['month', 'month'],
  min: ['99.5%', 99.5],
  concurrency: ['7', { kind: 'fixed', limit: 7 }],
  retries: ['9', 9],
  port: ['9', 9],
  priority: ['low', 'low'],
  bwlimit: ['7MB', 7e6],
  proxy: ['http://127.0.0.1:3128', ['http://127.0.0.1:3128']],
  'fallback-url': ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
  'archive-url': ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
  'listing-url': ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
  'fapi-url': ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
  'dapi-url': ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
  'spot-url': ['http://127.0.0.1:1', 'http://127.0.0.1:1'],
  join: ['archive', 'archive'],
  fill: ['rest', 'rest'],
  progress: ['plain', 'plain'],
  'prometheus-port': ['0.0.0.0:9464', { host: '0.0.0.0', port: 9464 }],
  'prometheus-textfile': ['a.prom', 'a.prom'],
  'retry-preset': ['history', 'history'],
  'retry-strategy': ['linear', 'linear'],
  'retry-factor': ['1.5', 1.5],
  jobs: ['9', 9],
  last: ['9', 9],
  'breaker-failures': ['9', 9],
  'breaker-successes': ['9', 9],
  'requests-per-minute': ['9', 9],
  'pool-limit': ['9', 9],
  'pool-limit-per-host': ['9', 9],
  limits: [
    'archive=6/s,funding=400/5m',
    [
      { bucket: 'archive', permits: 6, windowMs: 1000 },
      { bucket: 'funding', permits: 400, windowMs: 300_000 },
    ],
  ],
  shard: ['3/12', { index: 3, count: 12, text: '3/12' }],
  'log-level': ['debug', 'debug'],
  'egress-group': ['office', 'office'],
  redis: ['redis://queue:6379', 'redis://queue:6379'],
  's3-endpoint': ['http://127.0.0.1:9000/', 'http://127.0.0.1:9000'],
  's3-region': ['eu-central-1', 'eu-central-1'],
  top: ['50', 50],
  contract: ['all', 'all'],
  window: ['7d', 7 * 86_400_000],
  'min-age': ['90d', 90 * 86_400_000],
  as: ['list', 'list'],
};

/** A text that differs from the default of the flag, and its value. */
export function flagValue(name: FlagName): [string, unknown] {
  const spec = flagSpec(name);
  if (spec.value === undefined) return ['yes', true];
  const own = VALUES[name];
  if (spec.value === 'TIME' && own === undefined) return ['77s', 77_000];
  return own ?? (spec.list === undefined ? ['some text', 'some text'] : ['A1', ['A1']]);
}
