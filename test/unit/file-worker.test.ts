/** The thread that writes zips, here without a thread of its own. */
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { NoParamCallback } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { FileError, FileToWrite } from '../../src/lake/file-writer.js';
import { scratchFolder } from '../helpers/folders.js';

const port = vi.hoisted(() => ({ emitter: undefined as EventEmitter | undefined, synced: [] as string[] }));
vi.mock('node:worker_threads', async () => {
  const { EventEmitter: Emitter } = await import('node:events');
  const emitter = new Emitter();
  port.emitter = emitter;
  return {
    parentPort: Object.assign(emitter, { postMessage: (answer: unknown) => emitter.emit('answer', answer) }),
  };
});
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const fsync: typeof fs.fsync = Object.assign(
    (file: number, done: NoParamCallback) => {
      port.synced.push(fs.readlinkSync(`/proc/self/fd/${file}`));
      fs.fsync(file, done);
    },
    { __promisify__: fs.fsync.__promisify__ },
  );
  return { ...fs, fsync };
});

const folder = scratchFolder();

beforeAll(async () => {
  await import('../../src/lake/file-worker.js');
});

/** Stages the files. Resolves with the error of this job. */
async function stage(files: readonly FileToWrite[]): Promise<FileError | undefined> {
  const emitter = port.emitter ?? new EventEmitter();
  const answered = once(emitter, 'answer');
  emitter.emit('message', { id: 1, files });
  const [answer] = (await answered) as [{ id: number; error?: FileError }];
  expect(answer.id).toBe(1);
  return answer.error;
}

/** The files of an object: its sidecar, and then its zip. */
function filesIn(place: string): { sidecar: FileToWrite; zip: FileToWrite } {
  const base = join(folder, place);
  mkdirSync(base);
  const source = join(base, 'spool');
  writeFileSync(source, 'zip');
  const target = join(base, 'a', 'b', 'x.zip');
  return {
    sidecar: { content: Buffer.from('digest'), staged: join(base, '1'), target: `${target}.CHECKSUM` },
    zip: { content: source, staged: join(base, '2'), target },
  };
}

describe('files written on the thread', () => {
  it('are synced, and none is left when one of them cannot be written', async () => {
    const { sidecar, zip } = filesIn('power');
    port.synced.length = 0;
    expect(await stage([sidecar, zip])).toBeUndefined();
    expect(port.synced.sort()).toEqual([sidecar.staged, zip.staged]);
    expect([readFileSync(sidecar.staged, 'utf8'), readFileSync(zip.staged, 'utf8')]).toEqual([
      'digest',
      'zip',
    ]);
    expect(await stage([sidecar, { ...zip, content: join(folder, 'none') }])).toMatchObject({
      code: 'ENOENT',
    });
    expect([sidecar, zip].filter(({ staged }) => existsSync(staged))).toEqual([]);
  });
});
