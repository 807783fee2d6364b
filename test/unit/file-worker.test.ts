/** The thread that writes zips, here without a thread of its own. */
import { EventEmitter, once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { NoParamCallback } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { FileError, FileToWrite } from '../../src/lake/file-writer.js';
import { syncsOf } from '../helpers/file-handles.js';
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

/** Stages the files and gives them their names. Resolves with the first error of these jobs. */
async function write(files: readonly FileToWrite[]): Promise<FileError | undefined> {
  const emitter = port.emitter ?? new EventEmitter();
  for (const step of ['stage', 'rename']) {
    const answered = once(emitter, 'answer');
    emitter.emit('message', { id: 1, step, files });
    const [answer] = (await answered) as [{ id: number; error?: FileError }];
    expect(answer.id).toBe(1);
    if (answer.error !== undefined) return answer.error;
  }
  return undefined;
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
  it('are synced before they get their names, and then each folder with a new entry', async () => {
    const { sidecar, zip } = filesIn('power');
    port.synced.length = 0;
    const folders = await syncsOf(async () => {
      expect(await write([sidecar, zip])).toBeUndefined();
    });
    expect(port.synced.sort()).toEqual([sidecar.staged, zip.staged]);
    const base = join(folder, 'power');
    expect(folders.sort()).toEqual([base, join(base, 'a'), join(base, 'a', 'b')]);
    expect([readFileSync(sidecar.target, 'utf8'), readFileSync(zip.target, 'utf8')]).toEqual([
      'digest',
      'zip',
    ]);
    expect(readdirSync(base).sort()).toEqual(['a', 'spool']);
  });

  it('get their names in the given order, up to the first that cannot', async () => {
    const first = filesIn('blocked-sidecar');
    mkdirSync(join(first.sidecar.target, 'inside'), { recursive: true });
    expect(await write([first.sidecar, first.zip])).toMatchObject({ syscall: 'rename' });
    expect(existsSync(first.zip.target)).toBe(false);
    const second = filesIn('blocked-zip');
    mkdirSync(join(second.zip.target, 'inside'), { recursive: true });
    expect(await write([second.sidecar, second.zip])).toMatchObject({ syscall: 'rename' });
    expect(existsSync(second.sidecar.target)).toBe(true);
  });
});
