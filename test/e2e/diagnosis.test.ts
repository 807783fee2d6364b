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

/** The lines of the closing block that tell what held the run up, and warnings. */
const told = ({ stderr }: CliResult): string[] =>
  stderr.match(/^( {2}(waited|refused|retries|names|bottleneck) |warning: ).*$/gm) ?? [];

/** First requests of zips, for which `fault` is called; the rest is served. */
function faultAtFirst(fault: (count: number, response: ServerResponse) => boolean): void {
  const seen = new Set<string>();
  archive.fault = (path, _, response) => {
    if (!path.endsWith('.zip') || seen.has(path)) return false;
    seen.add(path);
    return fault(seen.size, response);
  };
}

/** Answers after so long. */
function slowly(ms: number): void {
  archive.fault = (path, request, response) => {
    if (!path.endsWith('.zip')) return false;
    setTimeout(() => {
      archive.serve(request, response);
    }, ms);
    return true;
  };
}

describe('the closing block', () => {
  it('says nothing of what held it up when nothing did', async () => {
    const result = await run();
    expect([result.code, told(result)]).toEqual([0, []]);
  });

  it('tells of waits for the limit of the user, which is the bottleneck, and is none when it is raised', async () => {
    const result = await run(['--request-interval', '100ms']);
    expect([result.code, told(result)]).toEqual([
      0,
      [
        expect.stringMatching(/^ {2}waited {5}for permits: \d+ requests, \S+ of \S+$/),
        expect.stringMatching(
          /^ {2}bottleneck --request-interval 100ms, \d+ % of the run: more goes through when it is shorter$/,
        ),
      ],
    ]);
    expect(told(await run(['--request-interval', '1ms']))).toEqual([]);
  });

  it('tells of refusals and how many of them there are in an hour, and is spared them by the flag that it names', async () => {
    // Ten requests go through at once, and one in each 300 ms.
    let left = 10;
    const refill = setInterval(() => (left = Math.min(10, left + 1)), 300);
    archive.fault = (path, _, response) => {
      if (!path.endsWith('.zip')) return false;
      left -= 1;
      if (left >= 0) return false;
      left = 0;
      response.writeHead(429, { 'retry-after': '2' }).end();
      return true;
    };
    const result = await run(['--days', '14']);
    const { refusals, refusalsPerHour } = networkOf(result).limiter;
    expect(refusals).toBeGreaterThan(0);
    expect(refusalsPerHour).toBeGreaterThan(refusals);
    expect([result.code, told(result)]).toEqual([
      0,
      [
        expect.stringMatching(/^ {2}waited {5}for permits: /),
        expect.stringMatching(
          /^ {2}refused {4}\d+ times? by a limit of the host \(429, 418\), [\d,]+ per hour$/,
        ),
        expect.stringMatching(
          /^ {2}bottleneck refusals by a limit of the host .* a longer --request-interval, /,
        ),
      ],
    ]);
    left = 10;
    const slower = await run(['--days', '14', '--request-interval', '400ms']);
    clearInterval(refill);
    expect([slower.code, networkOf(slower).limiter.refusals]).toEqual([0, 0]);
  });

  it.each(['--pool-limit', '--pool-limit-per-host'])('names %s, and not when it is raised', async (flag) => {
    slowly(100);
    const result = await run([flag, '1']);
    expect([result.code, told(result)]).toEqual([
      0,
      [expect.stringMatching(new RegExp(`^ {2}bottleneck ${flag} 1, \\d+ % of the run: a higher one `))],
    ]);
    expect(told(await run([flag, '30']))).toEqual([]);
  });

  it('names a timeout that waits too long for requests that hang', async () => {
    const hanging = (count: number): boolean => count % 5 === 0;
    faultAtFirst(hanging);
    const result = await run(['--headers-timeout', '4s']);
    const lines = [
      expect.stringMatching(/^ {2}retries {4}6 of 6 retried requests with success; .* cost \S+ of \S+$/),
      expect.stringMatching(
        /^ {2}bottleneck --headers-timeout 4s, \d+ % of the run: a shorter one .*; 99 of 100 answers took \S+ at most$/,
      ),
    ];
    expect([result.code, told(result)]).toEqual([0, lines]);
    faultAtFirst(hanging);
    expect(told(await run(['--headers-timeout', '400ms']))).toEqual([]);
  });

  it('names a timeout that is too short for its host', async () => {
    slowly(1500);
    const result = await run(['--days', '4', '--headers-timeout', '500ms', '--breaker-failures', '99']);
    expect([result.code, told(result).at(-1)]).toEqual([
      3,
      expect.stringMatching(/^ {2}bottleneck --headers-timeout 500ms, \d+ % of the run: a longer one /),
    ]);
    const longer = await run(['--days', '4', '--headers-timeout', '5s']);
    expect([longer.code, told(longer)]).toEqual([0, []]);
  });

  it.each([
    ['--retry-delay', ['--retry-strategy', 'fixed', '--retry-delay', '2s'], ['--retry-delay', '1ms']],
    [
      '--breaker-open 3s',
      ['--concurrency', '1', '--breaker-failures', '1', '--breaker-open', '3s'],
      ['--concurrency', '1', '--breaker-failures', '1', '--breaker-open', '1ms'],
    ],
  ])('names %s, and not when it is shorter', async (name, flags, shorter) => {
    const failing = (count: number, response: ServerResponse): boolean => {
      if (count > 1) return false;
      response.writeHead(503).end();
      return true;
    };
    faultAtFirst(failing);
    const result = await run(flags);
    expect([result.code, told(result)]).toEqual([
      0,
      [
        expect.stringMatching(/^ {2}retries {4}1 of 1 retried requests with success; /),
        expect.stringMatching(new RegExp(`^ {2}bottleneck .*${name}.* again sooner$`)),
      ],
    ]);
    faultAtFirst(failing);
    expect(told(await run(shorter))).toEqual([]);
  });

  it('names a concurrency that is more than the host serves, and not a lower one', async () => {
    let busy = 0;
    archive.fault = (path, request, response) => {
      if (!path.endsWith('.zip')) return false;
      if (busy >= 2) {
        response.writeHead(503).end();
        return true;
      }
      busy += 1;
      response.once('close', () => (busy -= 1));
      setTimeout(() => {
        archive.serve(request, response);
      }, 300);
      return true;
    };
    const patient = ['--breaker-failures', '999', '--retries', '50'];
    const result = await run(['--concurrency', '30', ...patient]);
    expect([result.code, told(result).at(-1)]).toEqual([
      0,
      expect.stringMatching(/^ {2}bottleneck retries that waited, .* a lower --concurrency, or auto, /),
    ]);
    const lower = await run(['--concurrency', '2', ...patient]);
    expect([lower.code, told(lower)]).toEqual([0, []]);
  });

  it('says where the concurrency settled; each change of it is an event with its reason', async () => {
    // Of the first thirty, four are served. The rest of the run is too short to try a higher level again.
    let refusals = 26;
    archive.fault = (path, request, response) => {
      if (!path.endsWith('.zip')) return false;
      refusals -= 1;
      if (refusals >= 0) response.writeHead(503).end();
      else
        setTimeout(() => {
          archive.serve(request, response);
        }, 100);
      return true;
    };
    const { code, events, stderr } = await run(['--breaker-failures', '999', '--retries', '50']);
    const levels = events.filter(({ event }) => event === 'concurrency');
    expect([code, levels[0]]).toEqual([0, expect.objectContaining({ from: 30, to: 21, why: 'refused' })]);
    const network = events.at(-1)?.['network'] as { concurrency: number; settled?: unknown };
    expect(network.settled).toEqual({ level: network.concurrency, most: 128, why: 'refused' });
    expect(stderr).toMatch(
      /^ {2}settled {4}at \d+ objects in flight, of 128 at most: the host refused more$/m,
    );
  });

  it('names the look-ups of a slow resolver', async () => {
    const env = preload(`
      import dns from 'node:dns';
      import { syncBuiltinESMExports } from 'node:module';
      const { lookup } = dns;
      dns.lookup = (...question) => setTimeout(() => lookup(...question), 3000);
      syncBuiltinESMExports();
    `);
    const result = await run([], { env }, archive.url.replace('127.0.0.1', 'localhost'));
    expect([result.code, told(result)]).toEqual([
      0,
      [expect.stringMatching(/^ {2}names {6}\d+ look-ups? took 3(\.\d)?s of \S+$/)],
    ]);
  });

  it('names a CPU that is busy, in a run of more than ten seconds', async () => {
    slowly(4000);
    const env = preload(`
      setInterval(() => {
        const end = performance.now() + 150;
        while (performance.now() < end);
      }, 160).unref();
    `);
    const result = await run(['--concurrency', '10'], { env });
    expect([result.code, told(result)]).toEqual([
      0,
      [
        expect.stringMatching(
          /^ {2}bottleneck the CPU: .* late to its own work and was busy, \d+ % of the run: /,
        ),
      ],
    ]);
  });
});

describe('a first attempt that fails', () => {
  it.each([
    [10, [/^warning: \d\d\.\d % of first attempts failed \(10 of \d\d requests\), usual is 0\.1 %: /]],
    [9, []],
  ])('is told when it happens too often behind retries that help: %i times', async (count, warnings) => {
    faultAtFirst((number, response) => {
      if (number > count) return false;
      response.destroy();
      return true;
    });
    const result = await run(['--concurrency', '1', '--breaker-failures', '99']);
    const { firstAttempts } = networkOf(result);
    expect([result.code, firstAttempts.failed]).toEqual([0, count]);
    expect(told(result)).toEqual(warnings.map((text) => expect.stringMatching(text)));
  });

  it('counts also where no retry follows', async () => {
    faultAtFirst((number, response) => {
      if (number > 10) return false;
      response.destroy();
      return true;
    });
    const result = await run(['--concurrency', '1', '--breaker-failures', '99', '--retries', '0']);
    expect(networkOf(result).firstAttempts.failed).toBe(10);
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
