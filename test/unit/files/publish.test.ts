import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeSyncedFolder, moveFile, publish, renameAll, syncAll } from '../../../src/files/publish.js';
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
