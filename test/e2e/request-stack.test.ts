/** The request stack as a server sees it: sockets, first requests, name lookups, retries. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CliResult } from '../helpers/cli.js';
import { preload } from '../helpers/preload.js';
import { argv } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-10-12', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT',
});

const objectOf = (path: string): string => path.replace(/\.CHECKSUM$/, '');

/** Answers no object before `count` different ones are asked for, and no more have come for a while. */
function holdUntil(count: number): { readonly first: Set<string>; readonly sockets: Set<Socket> } {
  const first = new Set<string>();
  const sockets = new Set<Socket>();
  const held: [IncomingMessage, ServerResponse][] = [];
  let isOpen = false;
  let isReleasing = false;
  scene.archive.fault = (path, request, response) => {
    if (isOpen || path.includes('prefix=')) return false;
    first.add(objectOf(path));
    sockets.add(request.socket);
    // A timeout closes the socket of its request.
    request.socket.once('close', () => isOpen || sockets.delete(request.socket));
    held.push([request, response]);
    if (first.size >= count && !isReleasing) {
      isReleasing = true;
      setTimeout(() => {
        isOpen = true;
        for (const [heldRequest, heldResponse] of held) scene.archive.serve(heldRequest, heldResponse);
      }, 300);
    }
    return true;
  };
  return { first, sockets };
}

describe('requests in flight', () => {
  it.each([8, 40])('use a socket each, up to --concurrency %i objects', async (concurrency) => {
    const { first, sockets } = holdUntil(concurrency);
    const result = await scene.vision(
      argv`--days 20 --concurrency ${String(concurrency)} --headers-timeout 10s --retries 0`,
    );
    // The zip and the sidecar of each object.
    expect([result.code, first.size, sockets.size]).toEqual([0, concurrency, 2 * concurrency]);
  });

  it('begin with 30 objects under --concurrency auto, before any answer is known', async () => {
    const { first } = holdUntil(30);
    const result = await scene.vision(['--days', '40', '--headers-timeout', '10s', '--retries', '0']);
    expect(result.code).toBe(0);
    // Pages of the listing that came before count as good answers.
    expect(first.size).toBeGreaterThanOrEqual(30);
    expect(first.size).toBeLessThanOrEqual(34);
  });

  it.each([
    ['128', ''],
    [
      '129',
      'warning: --concurrency 129: more than 128 objects in flight are not faster at the archive; the host may refuse this address\n',
    ],
  ])('are warned of above 128: --concurrency %s', async (concurrency, warning) => {
    const result = await scene.vision(['--days', '2', '--concurrency', concurrency]);
    expect(result.code).toBe(0);
    expect(result.stderr.match(/^warning: .*\n/gm)?.join('') ?? '').toBe(warning);
  });

  it('look the name of a host up once for all their sockets', async () => {
    const log = join(scene.scratch, 'lookups');
    const env = preload(
      scene.scratch,
      `
      import dns from 'node:dns';
      import { appendFileSync } from 'node:fs';
      import { syncBuiltinESMExports } from 'node:module';
      const { lookup } = dns;
      dns.lookup = (name, ...rest) => {
        appendFileSync(${JSON.stringify(log)}, name + '\\n');
        return lookup(name, ...rest);
      };
      syncBuiltinESMExports();
    `,
    );
    const { sockets } = holdUntil(8);
    const url = scene.archive.url.replace('127.0.0.1', 'localhost');
    const result = await scene.vision(['--days', '20', '--concurrency', '8', '--archive-url', url], { env });
    expect(result.code).toBe(0);
    expect(sockets.size).toBeGreaterThanOrEqual(8);
    expect(readFileSync(log, 'utf8')).toBe('localhost\n');
  });
});

describe('an object that its host refuses each time', () => {
  it('gets 1 + --retries requests in the first round and in each of the three further ones', async () => {
    const refused = '/data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-15.zip';
    scene.archive.fault = (path, _, response) => {
      if (path !== refused) return false;
      response.writeHead(503).end();
      return true;
    };
    const result = await scene.vision(['--days', '10', '--retries', '2', '--concurrency', '4']);
    expect(result.code).toBe(3);
    expect(scene.archive.requests.filter((path) => path === refused)).toHaveLength(3 * 4);
  });
});

describe('the figures of a run', () => {
  interface Network {
    readonly loopDelayMs: { readonly p99: number; readonly most: number };
    readonly pool: { readonly sockets: number; readonly most: number };
  }
  const networkOf = ({ events }: CliResult): Network =>
    (events.at(-1) as unknown as { network: Network }).network;

  it('count its sockets, and how late a busy process came to its work', async () => {
    // After a third of a second, in a run that lasts longer.
    const env = preload(
      scene.scratch,
      `
      setInterval(() => {
        const end = performance.now() + 120;
        while (performance.now() < end);
      }, 300).unref();
    `,
    );
    const sockets = new Set<Socket>();
    scene.archive.fault = (_, request) => {
      sockets.add(request.socket);
      return false;
    };
    const { pool, loopDelayMs } = networkOf(
      await scene.vision(['--days', '5', '--concurrency', '4', '--bwlimit', '50kB', '--json'], { env }),
    );
    expect(pool.sockets).toBe(sockets.size);
    expect(pool.most).toBeGreaterThanOrEqual(pool.sockets);
    expect(loopDelayMs.most).toBeGreaterThanOrEqual(100);
    expect(loopDelayMs.p99).toBeGreaterThan(0);
  });
});
