/** The request stack as a server sees it: sockets, first requests, name lookups, retries. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
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
});
