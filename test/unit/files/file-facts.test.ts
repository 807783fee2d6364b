import { createHash } from 'node:crypto';
import fs, { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { fileFacts, fileSize, fileSizes } from '../../../src/files/file-facts.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';

const folder = scratchFolder();

function made(content: string): string {
  const path = join(folder, 'file');
  writeFileSync(path, content);
  return path;
}

describe('size and digest of a file', () => {
  it('are its size, digest and lines, also beyond one read', async () => {
    const content = 'line 币\n'.repeat(300_000);
    const path = made(`${content}no end`);
    const whole = readFileSync(path);
    const sha256 = createHash('sha256').update(whole).digest('hex');
    expect(await fileFacts(path)).toEqual({ bytes: whole.length, sha256, newlines: 300_000 });
    expect(await fileSize(path)).toBe(whole.length);
    expect(openFiles(folder)).toEqual([]);
  });

  it('are not read to the end after a signal', async () => {
    const reason = new Error('ended by SIGINT');
    await expect(fileFacts(made('x'), AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('of an empty file are zero', async () => {
    expect(await fileFacts(made(''))).toMatchObject({ bytes: 0, newlines: 0 });
  });

  it('a folder, a missing file and a file in place of a folder have no size', async () => {
    const file = made('x');
    const sizes = await Promise.all([folder, join(folder, 'none'), join(file, 'below')].map(fileSize));
    expect(sizes).toEqual([undefined, undefined, undefined]);
  });

  it('are the same for many files at once', async () => {
    const many = join(folder, 'many');
    mkdirSync(join(many, 'folder'), { recursive: true });
    const names = Array.from({ length: 200 }, (_, index) => `file-${index}`);
    for (const [index, name] of names.entries()) writeFileSync(join(many, name), 'x'.repeat(index));
    symlinkSync('file-1', join(many, 'link'));
    const all = ['folder', 'missing', 'file-7/below', 'link', ...names];
    const none = [undefined, undefined, undefined, undefined];
    expect(await fileSizes(many, all)).toEqual([...none, ...names.keys()]);
    expect(await fileSizes(many, all)).toEqual(
      await Promise.all(all.map((name) => fileSize(join(many, name)))),
    );
    await expect(fileSizes(many, ['x'.repeat(300)])).rejects.toThrow('ENAMETOOLONG');
  });

  it('come several at once from a slow file system, which does not stop the program', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `slow-${index}`);
    for (const [index, name] of names.entries()) writeFileSync(join(folder, name), 'x'.repeat(index));
    const usual = fs.lstatSync;
    const blocking = vi.spyOn(fs, 'lstatSync').mockImplementation((path, options) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      return usual(path, options);
    });
    syncBuiltinESMExports();
    try {
      expect(await fileSizes(folder, [...names, 'missing', 'slow-1/below'])).toEqual([
        ...names.keys(),
        undefined,
        undefined,
      ]);
      expect(blocking.mock.calls.length).toBeLessThan(100);
      await expect(fileSizes(folder, [...names, 'x'.repeat(300)])).rejects.toThrow('ENAMETOOLONG');
    } finally {
      blocking.mockRestore();
      syncBuiltinESMExports();
    }
  });

  it('are not those of a missing file when the system cannot tell', async () => {
    await expect(fileSize(join(folder, 'x'.repeat(300)))).rejects.toThrow('ENAMETOOLONG');
  });
});
