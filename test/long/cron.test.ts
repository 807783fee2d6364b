/** The flags for unattended runs, through the real binary in an environment like cron's. */
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ChildProcess } from 'node:child_process';
import { text as textOf } from 'node:stream/consumers';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlOk, cryptodlProcess, FAST } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';

const NOW = '2026-11-21T08:00:00Z';
const DAYS = ['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19', '2026-11-20'];
const scratch = scratchFolder();
const folder = join(scratch, 'archive');
let archive: TestArchive;
let lakes = 0;
let out = '';

beforeAll(async () => {
  makeArchive(folder, {
    market: 'um',
    dataset: 'metrics',
    symbols: ['BTCUSDT', 'ETHUSDT', 'XRPUSDT'],
    from: '2026-11-10',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(folder);
});
afterAll(() => archive.close());
beforeEach(() => {
  lakes += 1;
  out = join(scratch, `lake-${lakes}`);
});
afterEach(() => {
  archive.fault = undefined;
  archive.requests.length = 0;
});

function words(...more: readonly string[]): string[] {
  return [
    'vision',
    ...(more.includes('--symbols') ? [] : ['--symbols', 'BTCUSDT,ETHUSDT']),
    '--dataset=metrics',
    '--days=5',
    `--now=${NOW}`,
    `--archive-url=${archive.url}`,
    `--out=${out}`,
    ...FAST,
    ...more,
  ];
}

const vision = (more: readonly string[], options?: CliOptions): Promise<CliResult> =>
  cryptodlProcess(words(...more), options);

/** Keys that the lake says it holds. */
function heldKeys(): string[] {
  return filesBelow(out)
    .filter((path) => path.startsWith('_manifests'))
    .flatMap((path) => readFileSync(join(out, path), 'utf8').trimEnd().split('\n'))
    .map((line) => (JSON.parse(line) as { key: string }).key);
}

function reportLines(): Record<string, unknown>[] {
  const [report] = filesBelow(out).filter((path) => path.startsWith('_failures'));
  const lines = readFileSync(join(out, report ?? 'none'), 'utf8')
    .trimEnd()
    .split('\n');
  return lines.slice(1).map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Holds back the answers to the paths that fit; resolves with the first of them. */
function holdBack(fits: (path: string) => boolean): { first: Promise<void>; release: () => void } {
  const held: (() => void)[] = [];
  let tell: () => void = () => undefined;
  const first = new Promise<void>((resolve) => {
    tell = resolve;
  });
  archive.fault = (path, request, response) => {
    if (!fits(path)) return false;
    held.push(() => {
      archive.serve(request, response);
    });
    tell();
    return true;
  };
  return {
    first,
    release: () => {
      archive.fault = undefined;
      for (const answer of held) answer();
    },
  };
}

/** Resolves when the program has said it. */
function saying(text: string): { onSpawn: (child: ChildProcess) => void; said: Promise<ChildProcess> } {
  let tell: (child: ChildProcess) => void = () => undefined;
  const said = new Promise<ChildProcess>((resolve) => {
    tell = resolve;
  });
  return {
    said,
    onSpawn: (child) => {
      for (const stream of [child.stdout, child.stderr]) {
        let all = '';
        stream?.on('data', (chunk: Buffer) => {
          all += chunk.toString('utf8');
          if (all.includes(text)) tell(child);
        });
      }
    },
  };
}

describe('--wait-lock', () => {
  const isZip = (path: string): boolean => path.endsWith('BTCUSDT-metrics-2026-11-18.zip');

  it('waits for the other run, says which one, and then does its own work', async () => {
    const holding = holdBack(isZip);
    let holder: ChildProcess | undefined;
    const first = vision(['--symbols', 'BTCUSDT'], { onSpawn: (child) => (holder = child) });
    await holding.first;
    const waiting = saying('(--wait-lock)');
    const second = vision(['--symbols', 'ETHUSDT', '--wait-lock', '30s'], waiting);
    await waiting.said;
    holding.release();
    expect((await first).code).toBe(0);
    const { code, stderr } = await second;
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^waiting up to (30|29\.\d)s \(--wait-lock\): another run is writing to this lake: pid \d+/m,
    );
    expect(stderr).toContain(`pid ${holder?.pid} on`);
    expect(stderr.match(/--wait-lock/g)).toHaveLength(1);
    expect(heldKeys()).toHaveLength(10);
  });

  it('ends with 6 when the other run takes longer, and says how long it has waited', async () => {
    const holding = holdBack(isZip);
    const first = vision([]);
    await holding.first;
    const { code, stderr } = await vision(['--wait-lock', '300ms', '--quiet']);
    expect(code).toBe(6);
    expect(stderr).toMatch(
      /^cryptodl: another run is writing .*; waited 300ms for it \(--wait-lock\)\n {2}wait for/,
    );
    holding.release();
    expect((await first).code).toBe(0);
  });
});

describe('--max-duration', () => {
  it('finishes and commits objects in flight, reports the rest as time-over, ends with 3; retry fetches the rest', async () => {
    const isSlow = (path: string): boolean => path.endsWith('.zip');
    const holding = holdBack(isSlow);
    const over = saying('"event":"time-over"');
    const running = vision(['--max-duration', '8s', '--concurrency', '2', '--json'], over);
    await holding.first;
    await over.said;
    holding.release();
    const { code, stderr, events } = await running;
    expect(code).toBe(3);
    const asked = archive.objectRequests().filter((path) => path.endsWith('.zip'));
    expect(asked).toHaveLength(2);
    expect(
      heldKeys()
        .map((key) => `/${key}`)
        .sort(),
    ).toEqual(asked.sort());
    expect(stderr).toContain('  8 failed, time-over (retrying may help)\n');
    expect(stderr).toMatch(
      / {6}\S+\.zip: --max-duration 8s ended before this object started\n {6}… and 5 more/,
    );
    const [next = ''] = /^ {2}next {7}cryptodl retry .*$/m.exec(stderr) ?? [];
    expect(next).not.toBe('');
    expect(events.at(-1)).toMatchObject({ exitCode: 3, failed: { 'time-over': 8 }, undone: 0 });
    expect(reportLines()).toHaveLength(8);
    expect(reportLines()[0]).toMatchObject({
      code: 'time-over',
      retryable: true,
      attempts: 0,
      message: '--max-duration 8s ended before this object started',
    });
    const again = await cryptodlProcess([...next.trim().split(/\s+/).slice(2), '--now', NOW, ...FAST]);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('8 ok')]);
    expect(heldKeys()).toHaveLength(10);
  });

  it('ends the planning before any object: 3, and the next step', async () => {
    const holding = holdBack((path) => path.includes('prefix='));
    const { code, stderr } = await vision(['--max-duration', '1s']);
    holding.release();
    expect(code).toBe(3);
    expect(stderr).toMatch(
      /^cryptodl: --max-duration 1s ended before the work started\n {2}try again, or with a longer --max-duration$/m,
    );
    expect(existsSync(join(out, '_failures'))).toBe(false);
  });
});

describe('--jitter', () => {
  it('begins after a random time, and says so unless it is to be quiet', async () => {
    const { code, stderr } = await vision(['--jitter', '20ms']);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^beginning in \d+ms \(--jitter 20ms\)\n/);
    expect((await vision(['--jitter', '20ms', '--quiet'])).stderr).toBe('');
  });

  it('Ctrl-C ends the wait', async () => {
    const waiting = saying('(--jitter 1000h');
    const running = vision(['--jitter', '1000h'], waiting);
    (await waiting.said).kill('SIGINT');
    const { code, stderr } = await running;
    expect(code).toBe(130);
    expect(stderr).toContain('ended by SIGINT before the work began');
    expect(archive.requests).toEqual([]);
  });
});

describe('--wait-for-publication', () => {
  /** Takes the newest day of a symbol out of the archive; the returned function publishes it. */
  function unpublish(symbol: string, days = 1): () => void {
    const names = DAYS.slice(-days).flatMap((day) => ['', '.CHECKSUM'].map((end) => `${day}.zip${end}`));
    const places = names.map((name) => ({
      there: join(folder, `data/futures/um/daily/metrics/${symbol}/${symbol}-metrics-${name}`),
      away: join(scratch, 'unpublished', `${symbol}-${name}`),
    }));
    mkdirSync(dirname(places[0]?.away ?? scratch), { recursive: true });
    for (const { there, away } of places) renameSync(there, away);
    let isAway = true;
    return () => {
      if (isAway) for (const { there, away } of places) renameSync(away, there);
      isAway = false;
    };
  }

  it('fetches objects published in the meantime', async () => {
    const publish = unpublish('BTCUSDT');
    const waiting = saying('(--wait-for-publication)');
    const running = vision(['--symbols', 'BTCUSDT', '--wait-for-publication', '2s'], waiting);
    await waiting.said;
    publish();
    const { code, stderr } = await running;
    expect([code, stderr]).toEqual([0, expect.stringContaining('5 ok in')]);
  });
});

describe('--error-on-nothing', () => {
  it('is 0 while there is something new, then 5, which says so', async () => {
    expect((await vision(['--error-on-nothing'])).code).toBe(0);
    const again = await vision(['--error-on-nothing', '--json']);
    expect(again.code).toBe(5);
    expect(again.stderr).toContain('  nothing new was written (--error-on-nothing)\n');
    expect(again.events.at(-1)).toMatchObject({ event: 'summary', exitCode: 5, outcomes: { skipped: 10 } });
    expect((await vision([])).code).toBe(0);
  });
});

describe('--ping', () => {
  interface Watcher {
    readonly url: string;
    readonly asked: string[];
    close(): Promise<void>;
  }

  async function watcher(
    status: (path: string, method: string) => number | undefined = () => 200,
  ): Promise<Watcher> {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      const path = request.url ?? '';
      const method = request.method ?? '';
      void textOf(request).then((body) => {
        asked.push([method, path, body].filter((part) => part !== '').join(' '));
        const code = status(path, method);
        if (code !== undefined) response.writeHead(code).end('OK');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}`,
      asked,
      close: () =>
        new Promise((resolve) => {
          server.close(() => {
            resolve();
          });
          server.closeAllConnections();
        }),
    };
  }

  async function watched(more: readonly string[], path = '/uuid', status?: Parameters<typeof watcher>[0]) {
    const service = await watcher(status);
    const result = await vision(['--ping', `${service.url}${path}`, ...more]);
    await service.close();
    return { ...result, asked: service.asked };
  }

  it('tells the beginning and the success', async () => {
    const { code, asked, stderr } = await watched(['--quiet'], '/uuid', (path) =>
      path === '/uuid' ? 201 : 200,
    );
    expect([code, stderr]).toEqual([0, '']);
    expect(asked).toEqual([
      'GET /uuid/start',
      'POST /uuid complete: nothing is missing in 2 series of 1 order',
    ]);
  });

  it('tells the success without the verdict to a watcher that knows only GET', async () => {
    const { code, asked } = await watched(['--quiet'], '/uuid', (_, method) =>
      method === 'GET' ? 200 : 405,
    );
    expect([code, asked.at(-1)]).toEqual([0, 'GET /uuid']);
  });

  it('tells the failure, also of a run that could not begin; a query stays where it is', async () => {
    const nothing = await watched(['--symbols', 'NOPEUSDT'], '/uuid/?rid=1&x=a%20b');
    expect(nothing.code).toBe(2);
    expect(nothing.asked).toEqual(['GET /uuid/start?rid=1&x=a%20b', 'GET /uuid/fail?rid=1&x=a%20b']);
    archive.fault = (path, _request, response) => {
      if (!path.endsWith('11-18.zip')) return false;
      response.writeHead(503).end();
      return true;
    };
    const failed = await watched(['--retries', '0']);
    expect([failed.code, failed.asked.at(-1)]).toEqual([
      3,
      expect.stringMatching(/^POST \/uuid\/fail incomplete: 2 of 2 series lack 576 rows/),
    ]);
  });

  it.each([
    ['answers 500', 500, 'answered 500'],
    ['answers nothing', undefined, 'no answer within [\\d.]+s'],
  ])('a watcher that %s is one warning, and changes nothing', async (_, status, said) => {
    const { code, stderr, asked } = await watched([], '/secret', () => status);
    expect(code).toBe(0);
    expect([...new Set(asked.map((line) => line.split(' ', 2).join(' ')))]).toEqual([
      'GET /secret/start',
      'POST /secret',
    ]);
    expect(stderr.match(/^warning: .*$/gm)).toEqual([
      expect.stringMatching(new RegExp(`^warning: --ping: .*${said}$`)),
    ]);
    expect(stderr).not.toContain('secret');
  });

  it('goes through the proxy, is not in the failure report, and a dry run is not told of', async () => {
    const proxy = await watcher();
    archive.fault = (path, _request, response) => {
      if (!path.endsWith('11-18.zip')) return false;
      response.writeHead(503).end();
      return true;
    };
    const through = { HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' };
    const { code } = await vision(['--ping', 'http://watcher.test/secret', '--retries', '0'], {
      env: through,
    });
    expect(code).toBe(3);
    expect(proxy.asked).toEqual([
      'GET http://watcher.test/secret/start',
      expect.stringMatching(/^POST http:\/\/watcher.test\/secret\/fail incomplete: /),
    ]);
    const [report = ''] = filesBelow(out).filter((path) => path.startsWith('_failures'));
    expect(readFileSync(join(out, report), 'utf8')).not.toContain('secret');
    await cryptodlOk(words('--ping', `${proxy.url}/dry`, '--dry-run'));
    await proxy.close();
    expect(proxy.asked).toHaveLength(2);
  });
});
