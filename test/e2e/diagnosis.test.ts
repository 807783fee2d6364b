/** What a run says about its own speed: waits, refusals, retries, and the flag to change. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { metricsScene } from '../helpers/metrics-scene.js';

const scratch = scratchFolder();
let archive: TestArchive;

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-10-22',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());
afterEach(() => {
  archive.fault = undefined;
});

const WHAT = ['--interval', '1h', '--symbols', 'BTCUSDT', '--verify', 'none'];

/** Thirty objects without their sidecars, unless `--days` says another number. */
function run(flags: readonly string[] = [], options: CliOptions = {}, url = archive.url): Promise<CliResult> {
  const where = ['--out', join(scratch, randomUUID()), '--archive-url', url];
  const when = ['--now', '2026-11-21T12:00:00Z', '--days', '30'];
  return cryptodl(['vision', ...WHAT, ...where, ...when, ...FAST, '--json', ...flags], options);
}

interface Network {
  readonly pool: { readonly queued: number };
  readonly dns: Readonly<Record<'lookups' | 'hits' | 'misses' | 'failures' | 'ms', number>>;
  readonly limiter: { readonly refusals: number; readonly refusalsPerHour: number };
  readonly firstAttempts: { readonly requests: number; readonly failed: number };
}

const networkOf = ({ events }: CliResult): Network => events.at(-1)?.['network'] as Network;

/** Loads a script into the process before the program. */
function preload(script: string): Record<string, string> {
  const file = join(scratch, `${randomUUID()}.mjs`);
  writeFileSync(file, script);
  return { NODE_OPTIONS: `--import ${file}` };
}

describe('the figures of the network', () => {
  it.each(['--pool-limit', '--pool-limit-per-host'])('have the requests that wait for %s', async (flag) => {
    const held: [IncomingMessage, ServerResponse][] = [];
    let release = false;
    archive.fault = (path, request, response) => {
      if (!path.endsWith('.zip') || release) return false;
      held.push([request, response]);
      return true;
    };
    let told = '';
    const result = await run(['--concurrency', '8', flag, '2'], {
      onSpawn: (child) =>
        child.stdout?.on('data', (bytes: Buffer) => {
          told += bytes.toString();
          if (release || !told.includes('"event":"network"')) return;
          release = true;
          for (const [request, response] of held) archive.serve(request, response);
        }),
    });
    const first = result.events.find(({ event }) => event === 'network') as unknown as Network;
    expect([result.code, held.length, first.pool.queued]).toEqual([0, 2, 6]);
    expect(networkOf(result).pool.queued).toBe(0);
  });

  it('have the look-ups of names', async () => {
    const env = preload(`
      import dns from 'node:dns';
      import { syncBuiltinESMExports } from 'node:module';
      const { lookup } = dns;
      dns.lookup = (...question) => setTimeout(() => lookup(...question), 300);
      syncBuiltinESMExports();
    `);
    const result = await run(['--concurrency', '8'], { env }, archive.url.replace('127.0.0.1', 'localhost'));
    const { dns } = networkOf(result);
    expect([result.code, dns.misses, dns.failures]).toEqual([0, 1, 0]);
    expect(dns.lookups).toBe(dns.hits + dns.misses);
    expect(dns.hits).toBeGreaterThan(0);
    expect(dns.ms).toBeGreaterThanOrEqual(290);
  });
});

describe('metrics --concurrency', () => {
  const scene = metricsScene(scratch, { symbols: [{ symbol: 'BTCUSDT', host: 'fapi', fundingHours: 8 }] });
  afterAll(async () => (await scene).close());

  const TOO_MANY = /^warning: --concurrency .*$/gm;

  it.each<[readonly string[], string[]]>([
    [['--concurrency', '20'], []],
    [
      ['--concurrency', '21'],
      [
        'warning: --concurrency 21: more than 20 series in flight gain nothing at REST, which counts requests per minute, and may get this address refused',
      ],
    ],
    [['--concurrency', '21', '--join', 'archive'], []],
    [['--concurrency', 'auto'], []],
  ])('warns above 20, the archive apart: %s', async (flags, warnings) => {
    const what = ['--symbols', 'BTCUSDT', '--dataset', 'fundingRate', '--days', '1', '--dry-run'];
    const { stderr } = await (await scene).run(['metrics', ...what, ...flags]);
    expect(stderr.match(TOO_MANY) ?? []).toEqual(warnings);
  });
});
