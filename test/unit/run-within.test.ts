/** What a run within the process of the tests must not leave behind. */
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { refuseLeaks } from '../helpers/run-within.js';

type Close = () => unknown;

describe('a run fails when it leaves behind', () => {
  const scratch = scratchFolder();
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  const thread = async (): Promise<Close> => {
    const worker = new Worker('setInterval(() => undefined, 1000)', { eval: true });
    // Like the thread of the program: it does not keep the process alive.
    worker.unref();
    await once(worker, 'online');
    return () => worker.terminate();
  };
  const listener = (signal: NodeJS.Signals) => (): Close => {
    const act = (): void => undefined;
    process.on(signal, act);
    return () => process.off(signal, act);
  };

  it.each<[string, () => Close | Promise<Close>, string]>([
    [
      'a timer',
      () => {
        // Several, because one of vitest's own timers can end meanwhile.
        const timers = Array.from({ length: 10 }, () => setTimeout(() => undefined, 60_000));
        return () => {
          for (const timer of timers) clearTimeout(timer);
        };
      },
      'Timeout ×',
    ],
    [
      'a server',
      async () => {
        const server = createServer().listen(0, '127.0.0.1');
        await once(server, 'listening');
        return () => server.close();
      },
      'TCPServerWrap ×1',
    ],
    [
      'an open file',
      () => {
        const descriptor = openSync(file, 'r');
        return () => {
          closeSync(descriptor);
        };
      },
      `${file} ×1`,
    ],
    [
      'an open folder',
      async () => {
        const folder = await opendir(scratch);
        return () => folder.close();
      },
      `${scratch} ×1`,
    ],
    ['a thread', thread, 'worker thread ×1'],
    ['a listener of SIGINT', listener('SIGINT'), 'listener of SIGINT ×1'],
    ['a listener of SIGTERM', listener('SIGTERM'), 'listener of SIGTERM ×1'],
  ])('%s', async (_, open, named) => {
    const leak = async (): Promise<Close> => open();
    const closes: Close[] = [];
    const leaking = refuseLeaks(async () => closes.push(await leak()), 20);
    await expect(leaking).rejects.toThrow(`the run left behind: ${named}`);
    for (const close of closes) await close();
    await refuseLeaks(async () => (await leak())());
  });
});
