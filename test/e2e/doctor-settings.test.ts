/** `cryptodl doctor`: request settings from flags, environment and config file, and the limits of the machine. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import type { CliOptions } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

interface Line {
  readonly check: string;
  readonly status: string;
  readonly found: string;
  readonly next?: string;
  readonly figures?: Readonly<Record<string, unknown>>;
}

const scratch = scratchFolder();
/** These tests need no host. */
const NOWHERE = 'http://127.0.0.1:1';
const PLACES = ['archive', 'fapi', 'dapi', 'spot'].flatMap((host) => [`--${host}-url`, NOWHERE]);
const SETTINGS = ['files', 'threads', 'concurrency', 'retries', 'breaker', 'pool'];

async function doctor(flags: readonly string[], options: CliOptions = {}): Promise<Record<string, Line>> {
  const where = ['--out', join(scratch, 'lake'), ...PLACES, '--json'];
  const { events, stderr } = await cryptodl(['doctor', ...where, ...flags], options);
  expect(stderr).toMatch(/^\d+ ok, \d+ warn, \d+ fail(, \d+ note)?\n$/);
  return Object.fromEntries((events as unknown as Line[]).map((line) => [line.check, line]));
}

it('the defaults are ok, and each line has its figures', async () => {
  const lines = await doctor([]);
  const wrong = SETTINGS.filter((check) => lines[check]?.status !== 'ok' || lines[check].next !== undefined);
  expect(wrong).toEqual([]);
  expect(lines['concurrency']?.found).toContain('auto, up to 128 objects in flight');
  expect(lines['retries']?.figures).toEqual({ retries: 2, longestDelayMs: 150 });
  expect(lines['breaker']?.figures).toEqual({ failures: 5, successes: 3, openMs: 30_000 });
  expect(lines['pool']?.figures).toEqual({ connections: 264, keepAliveMs: 30_000 });
  expect(lines['memory']?.figures?.['availableBytes']).toBeGreaterThan(0);
  expect(lines['files']?.figures).toMatchObject({ needed: 584, openFiles: expect.any(Number) as number });
});

describe('settings that contradict each other', () => {
  it.each<[string, readonly string[], string, string]>([
    [
      'concurrency',
      ['--concurrency', '200'],
      'more than 128 are not faster at the archive',
      '--concurrency auto',
    ],
    ['concurrency', ['--concurrency', 'auto:300'], 'up to 300 objects in flight', '--concurrency auto:128'],
    ['retries', ['--retries', '0'], 'not retried before the next round', '--retries 2'],
    ['retries', ['--retry-delay', '5s'], 'above the maximum of 2s', '--retry-max-delay 5s'],
    [
      'retries',
      ['--retry-factor', '3', '--retry-strategy', 'linear'],
      '--retry-factor has no effect with --retry-strategy linear',
      '--retry-strategy full',
    ],
    [
      'retries',
      [
        '--retries',
        '4',
        '--retry-delay',
        '1s',
        '--retry-factor',
        '2',
        '--retry-max-delay',
        '1m',
        '--max-wait',
        '7s',
        '--breaker-open',
        '1s',
        '--blocked-wait',
        '1s',
      ],
      'a retry may have to wait 8s, but --max-wait is 7s',
      '--max-wait 8s',
    ],
    [
      'retries',
      ['--retry-preset', 'realtime', '--max-wait', '31s', '--blocked-wait', '1s'],
      'wait 32s',
      '--max-wait 32s',
    ],
    ['breaker', ['--breaker-failures', '1'], 'one failure stops all requests', '--breaker-failures 5'],
    ['breaker', ['--breaker-open', '0'], 'the breaker never pauses a failing host', '--breaker-open 30s'],
    ['breaker', ['--breaker-successes', '51'], 'almost never closes', '--breaker-successes 3'],
    [
      'breaker',
      ['--breaker-open', '2h'],
      '--breaker-open 2h 0m is longer than --max-wait 60m',
      '--max-wait 7200s',
    ],
    ['breaker', ['--blocked-wait', '2h'], '--blocked-wait', '--max-wait 7200s'],
    [
      'pool',
      ['--pool-limit', '50'],
      '--pool-limit 50 is less than 128 objects in flight',
      '--concurrency auto:50 or --pool-limit 256',
    ],
    [
      'pool',
      ['--pool-limit-per-host', '15', '--concurrency', '16'],
      '--pool-limit-per-host 15 is less than 16',
      '--concurrency auto:15 or --pool-limit-per-host 32',
    ],
    [
      'pool',
      ['--pool-limit', '40', '--pool-limit-per-host', '41', '--concurrency', '16'],
      '--pool-limit-per-host 41 has no effect',
      '--pool-limit-per-host 40',
    ],
    [
      'pool',
      ['--keep-alive', '0', '--fapi-url', 'https://127.0.0.1:1'],
      'opens a new TLS connection',
      '--keep-alive 30s',
    ],
  ])('%s %j', async (check, flags, found, next) => {
    const lines = await doctor(flags);
    expect(lines[check]).toMatchObject({
      status: 'warn',
      found: expect.stringContaining(found) as string,
      next,
    });
    // One mistake is reported once.
    expect(SETTINGS.filter((other) => lines[other]?.status !== 'ok')).toEqual([check]);
  });

  it('are not reported where they have no bad effect', async () => {
    const lines = await doctor([
      '--keep-alive',
      '0',
      '--concurrency',
      '20',
      '--pool-limit',
      '20',
      '--retries',
      '0',
      '--retry-delay',
      '2h',
    ]);
    expect([lines['pool']?.status, lines['concurrency']?.found]).toEqual(['ok', '20 objects in flight']);
    expect(lines['retries']?.found).not.toContain('--max-wait');
    const shared = await doctor(['--keep-alive', '0', '--http2', '--fapi-url', 'https://127.0.0.1:1']);
    expect(shared['pool']?.status).toBe('ok');
    // The factor of the preset was not given.
    expect((await doctor(['--retry-strategy', 'linear']))['retries']?.status).toBe('ok');
  });

  it('are reported from the environment and from a config file of runs', async () => {
    const file = join(scratch, 'config.yaml');
    writeFileSync(file, 'concurrency: 200\nsymbols: [BTCUSDT]\ninterval: 1h\nbreaker-failures: 1\n');
    const env = { CRYPTODL_CONFIG: file, CRYPTODL_POOL_LIMIT: '10', CRYPTODL_CONCURRENCY: '150' };
    const lines = await doctor(['--breaker-failures', '5'], { env });
    expect(lines['concurrency']?.found).toMatch(/^150 objects/);
    expect(lines['pool']?.next).toBe('--concurrency auto:10 or --pool-limit 300');
    expect(lines['breaker']?.status).toBe('ok');
    const configured = await doctor(['--config', file]);
    expect(configured['concurrency']?.found).toMatch(/^200 objects/);
    expect(configured['breaker']?.status).toBe('warn');
  });
});

it('socket limits do not apply to the checks: hosts that do not answer are checked at the same time', async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const hosts = ['fapi', 'dapi', 'spot'].flatMap((host) => [`--${host}-url`, url]);
  const timeouts = ['--total-timeout', '2s'];
  const { events } = await cryptodl([
    'doctor',
    '--archive-url',
    NOWHERE,
    ...hosts,
    '--json',
    ...timeouts,
    '--pool-limit',
    '1',
    '--pool-limit-per-host',
    '1',
  ]);
  silent.closeAllConnections();
  silent.close();
  const rest = (events as unknown as Line[]).filter(({ check }) => check === 'rest');
  expect(rest.map(({ figures }) => figures?.['code'])).toEqual(Array(3).fill('total-timeout'));
});

describe('the limits of the machine', () => {
  it('too few open files are a warning that names a concurrency that works', async () => {
    const wrap = ['sh', '-c', 'ulimit -n 200; exec "$0" "$@"'];
    const lines = await doctor([], { wrap });
    expect(lines['files']).toMatchObject({
      status: 'warn',
      figures: { needed: 584, openFiles: 200 },
      next: expect.stringContaining('or --concurrency auto:32') as string,
    });
    const fewer = await doctor(['--concurrency', 'auto:32'], { wrap });
    expect(fewer['files']?.status).toBe('ok');
  });

  it('64 open files are a warning, and the other checks go on', async () => {
    const lines = await doctor([], { wrap: ['sh', '-c', 'ulimit -n 64; exec "$0" "$@"'] });
    expect(lines['files']).toMatchObject({ status: 'warn', figures: { openFiles: 64 } });
    expect(lines['files']?.next).not.toContain('--concurrency');
    expect(lines['leftovers']?.status).toBe('ok');
  });

  it('a small thread pool is a warning', async () => {
    const lines = await doctor([], { env: { UV_THREADPOOL_SIZE: '2' } });
    expect(lines['threads']).toMatchObject({ status: 'warn', next: 'unset UV_THREADPOOL_SIZE' });
  });
});
