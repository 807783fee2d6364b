import { createHash } from 'node:crypto';
import fs, { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  fileFacts,
  fileSize,
  fileSizes,
  makeSyncedFolder,
  moveFile,
  publish,
  renameAll,
  syncAll,
} from '../../../src/files/publish.js';
import { refuse, syncsOf, withRenames } from '../../helpers/file-handles.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';

const folder = scratchFolder();

function staged(content: string): string {
  const path = join(folder, 'staged.partial');
  writeFileSync(path, content);
  return path;
}

describe('publishing', () => {
  it('of a file that is not there leaves the target as it was', async () => {
    const target = join(folder, 'd', 'x');
    await publish(staged('kept'), target);
    await expect(publish(join(folder, 'nothing'), target)).rejects.toThrow('ENOENT');
    expect(readFileSync(target, 'utf8')).toBe('kept');
  });

  it('onto a folder fails, and the staged file stays', async () => {
    const target = join(folder, 'taken');
    mkdirSync(join(target, 'inside'), { recursive: true });
    const path = staged('x');
    await expect(publish(path, target)).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(existsSync(path)).toBe(true);
  });
});

it('a file that is moved to another file system is copied before it is removed; after any other refusal it stays', async () => {
  const [from, to] = [staged('whole'), join(folder, 'moved')];
  await withRenames(
    () => moveFile(from, to),
    (path) => (path === from ? refuse('EXDEV') : undefined),
  );
  expect([readFileSync(to, 'utf8'), existsSync(from)]).toEqual(['whole', false]);
  const refused = withRenames(
    () => moveFile(to, from),
    () => refuse('EACCES'),
  );
  await expect(refused).rejects.toThrow('EACCES');
  expect([existsSync(to), existsSync(from)]).toEqual([true, false]);
});

it('a new folder with its parents survives a power failure', async () => {
  const parents = [folder, join(folder, 'synced'), join(folder, 'synced', 'a')];
  expect((await syncsOf(() => makeSyncedFolder(join(folder, 'synced', 'a', 'b')))).sort()).toEqual(parents);
});

describe('to survive a power failure, publishing', () => {
  it('syncs the file first, and then every folder that has a new entry', async () => {
    const path = staged('whole');
    const base = join(folder, 'power');
    mkdirSync(base);
    const targets = ['x', 'y'].map((name) => join(base, 'a', 'b', 'c', name));
    const publications = targets.map((target, index) => {
      const copy = `${path}.${index}`;
      writeFileSync(copy, 'whole');
      return { staged: copy, target };
    });
    const synced = await syncsOf(() => syncAll(publications).then(() => renameAll(publications)));
    expect(synced.slice(0, 2).sort()).toEqual(publications.map((publication) => publication.staged));
    const folders = [[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map((names) => join(base, ...names));
    expect(synced.slice(2).sort()).toEqual(folders);
  });

  it('gives files their names in the given order, up to the first that cannot get its name', async () => {
    const files = ['1', '2', '3'].map((name) => join(folder, `ordered-${name}`));
    const publications = files.map((target) => ({ staged: `${target}.staged`, target }));
    for (const one of publications) writeFileSync(one.staged, 'whole');
    mkdirSync(join(files[1] ?? '', 'inside'), { recursive: true });
    await expect(renameAll(publications)).rejects.toMatchObject({ syscall: 'rename' });
    expect(publications.map((one) => existsSync(one.staged))).toEqual([false, true, true]);
  });

  it('syncs only the folder of the file when that was there', async () => {
    const path = staged('whole');
    expect(await syncsOf(() => publish(path, join(folder, 'there')))).toEqual([path, folder]);
    expect(openFiles(folder)).toEqual([]);
  });

  it.each(['EINVAL', 'ENOTSUP', 'EISDIR'])(
    'does without folders that cannot be synced (%s)',
    async (code) => {
      const path = staged('whole');
      const target = join(folder, `on-${code}`);
      await syncsOf(
        () => publish(path, target),
        (synced) => (synced === folder ? refuse(code) : undefined),
      );
      expect(existsSync(target)).toBe(true);
      expect(openFiles(folder)).toEqual([]);
    },
  );

  it('fails when a folder cannot be synced for another reason, and names it', async () => {
    const path = staged('whole');
    const failing = syncsOf(
      () => publish(path, join(folder, 'never')),
      (synced) => (synced === folder ? refuse('EIO') : undefined),
    );
    await expect(failing).rejects.toThrow(`EIO: refused '${folder}'`);
  });

  it.each(['EIO', 'EINVAL'])(
    'puts no file in place that cannot be synced (%s), and names it',
    async (code) => {
      const path = staged('whole');
      const target = join(folder, `not-${code}`);
      const failing = syncsOf(
        () => publish(path, target),
        (synced) => (synced === path ? refuse(code) : undefined),
      );
      await expect(failing).rejects.toThrow(`${code}: refused '${path}'`);
      expect([existsSync(target), openFiles(folder)]).toEqual([false, []]);
    },
  );
});

describe('size, digest and times of a file', () => {
  it('are its size, digest and lines, also beyond one read', async () => {
    const content = 'line 币\n'.repeat(300_000);
    const path = staged(`${content}no end`);
    const whole = readFileSync(path);
    const sha256 = createHash('sha256').update(whole).digest('hex');
    expect(await fileFacts(path)).toEqual({ bytes: whole.length, sha256, newlines: 300_000 });
    expect(await fileSize(path)).toBe(whole.length);
    expect(openFiles(folder)).toEqual([]);
  });

  it('are not read to the end after a signal', async () => {
    const reason = new Error('ended by SIGINT');
    await expect(fileFacts(staged('x'), AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('of an empty file are zero', async () => {
    expect(await fileFacts(staged(''))).toMatchObject({ bytes: 0, newlines: 0 });
  });

  it('a folder, a missing file and a file in place of a folder have no size', async () => {
    const file = staged('x');
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
