/** The manifests that a run keeps in memory: what they say after appends, and which of them stay. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FOLDERS } from '../../../src/lake/layout.js';
import { manifestPlace } from '../../../src/lake/manifest-place.js';
import type { ManifestLine, ObjectLine } from '../../../src/model/manifest-line.js';
import { readManifest } from '../../../src/lake/manifest.js';
import { Manifests } from '../../../src/lake/manifests.js';
import { objectLine, SETTINGS } from '../../helpers/conversion.js';
import { refuse, withCalls } from '../../helpers/file-handles.js';
import { scratchFolder } from '../../helpers/folders.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const ARCHIVE = loadBinance().archive;

const scratch = scratchFolder();
mkdirSync(join(scratch, FOLDERS.manifests));
const folderOf = (): Promise<string> => mkdtemp(join(scratch, 'series-'));
const line = (day: number): ReturnType<typeof objectLine> => objectLine(`2024-01-0${day}`);
const writeLines = (folder: string, lines: readonly ManifestLine[]): void => {
  writeFileSync(manifestPlace(folder).path, lines.map((each) => `${JSON.stringify(each)}\n`).join(''));
};
const write = (folder: string, ...days: number[]): void => {
  writeLines(folder, days.map(line));
};
/** Lines of consecutive days. */
const linesOf = (count: number, fields: Partial<ObjectLine> = {}): ObjectLine[] =>
  Array.from({ length: count }, (_, at) =>
    objectLine(new Date(Date.UTC(2001, 0, 1 + at)).toISOString().slice(0, 10), fields),
  );
const daysHeld = async (manifests: Manifests, folder: string): Promise<string[]> =>
  (await manifests.of(folder)).parquet.lines().map(({ period }) => period);

describe('a manifest in memory', () => {
  it('agrees with the file after every append, also for an earlier reader', async () => {
    const folder = await folderOf();
    write(folder, 1);
    const manifests = new Manifests(ARCHIVE);
    const before = await manifests.of(folder);
    const again = { ...line(1), sha256: 'f'.repeat(64) };
    const absent = { first: '2024-01-03', last: '2024-01-03', cadence: 'daily', reason: 'hole' } as const;
    await manifests.append(folder, [line(2), again]);
    await manifests.append(folder, [
      { v: 1, kind: 'dropped', key: line(2).key, format: 'parquet', at: '2024-02-01T00:00:00.000Z' },
      { v: 1, kind: 'absent', ...absent, asked: 1, at: '2024-02-01T00:00:00.000Z', tool: 'test' },
    ]);
    const read = await readManifest(folder, ARCHIVE);
    expect(before.parquet.lines()).toEqual(read.parquet.lines());
    expect(before.parquet.lines()).toEqual([again]);
    expect(before.absences.days()).toEqual(read.absences.days());
    expect(read.absences.days().size).toBe(1);
  });

  it('agrees with the file if lines are appended during a read', async () => {
    const folder = await folderOf();
    write(folder, 1);
    const manifests = new Manifests(ARCHIVE);
    const reading = manifests.of(folder);
    await manifests.append(folder, [line(2)]);
    expect((await reading).parquet.size).toBe(2);
  });

  it('has the lines of an append that was under way when it was asked for', async () => {
    for (const isRead of [true, false]) {
      const folder = await folderOf();
      writeLines(folder, linesOf(500));
      const manifests = new Manifests(ARCHIVE);
      if (isRead) await manifests.of(folder);
      const appending = manifests.append(folder, [line(1)]);
      const asked = manifests.of(folder);
      await appending;
      expect((await asked).parquet.size).toBe(501);
    }
  });

  it('is read again after a failed append, because the lines may be in the file or not', async () => {
    const folder = await folderOf();
    write(folder, 1);
    const manifests = new Manifests(ARCHIVE);
    await manifests.of(folder);
    const appending = withCalls(
      'datasync',
      () => manifests.append(folder, [line(2)]),
      (path) => (path === manifestPlace(folder).path ? refuse('EIO') : undefined),
    );
    await expect(appending).rejects.toThrow('EIO');
    expect(await daysHeld(manifests, folder)).toEqual(['2024-01-01', '2024-01-02']);
  });

  it('is read again after a failed read', async () => {
    const folder = await folderOf();
    mkdirSync(manifestPlace(folder).path);
    const manifests = new Manifests(ARCHIVE);
    await expect(manifests.of(folder)).rejects.toThrow('is not a regular file');
    rmSync(manifestPlace(folder).path, { recursive: true });
    write(folder, 1);
    expect(await daysHeld(manifests, folder)).toEqual(['2024-01-01']);
  });
});

describe('of many manifests', () => {
  it('those used last stay in memory, as far as their lines allow', async () => {
    const folders = await Promise.all([folderOf(), folderOf(), folderOf()]);
    const [first, second, third] = folders;
    for (const folder of folders) write(folder, 1, 2);
    // Each counts as 6 lines: 2, and 4 for the manifest itself.
    const manifests = new Manifests(ARCHIVE, 12);
    const [firstRead, secondRead] = [await manifests.of(first), await manifests.of(second)];
    expect(await manifests.of(first)).toBe(firstRead);
    await manifests.of(third);
    expect(await manifests.of(first)).toBe(firstRead);
    expect(await manifests.of(second)).not.toBe(secondRead);
  });

  it('one grows beyond the limit by appends, and the others go; it stays while it is the only one', async () => {
    const [small, large] = [await folderOf(), await folderOf()];
    write(small, 1);
    write(large, 1);
    const manifests = new Manifests(ARCHIVE, 10);
    const [smallRead, largeRead] = [await manifests.of(small), await manifests.of(large)];
    await manifests.append(large, [2, 3, 4, 5, 6, 7, 8].map(line));
    expect(await manifests.of(large)).toBe(largeRead);
    expect(await manifests.of(small)).not.toBe(smallRead);
  });

  it.each([
    [4000, true],
    [6000, false],
  ])('two of %d lines stay both: %s', async (count, isKept) => {
    const [first, second] = [await folderOf(), await folderOf()];
    for (const folder of [first, second]) writeLines(folder, linesOf(count));
    const manifests = new Manifests(ARCHIVE);
    const read = await manifests.of(first);
    await manifests.of(second);
    expect((await manifests.of(first)) === read).toBe(isKept);
  });

  const absent = {
    v: 1,
    kind: 'absent',
    reason: 'hole',
    asked: 1,
    at: '2024-02-01T00:00:00.000Z',
    tool: 'test',
  } as const;
  const days = { ...absent, cadence: 'daily', first: '2024-01-01', last: '2024-03-31' } as const;
  const months = { ...absent, cadence: 'monthly', first: '2017-01', last: '2023-12' } as const;

  it.each([
    ['parquet', linesOf(4)],
    ['csv', linesOf(4, { settings: { ...SETTINGS, format: 'csv' } })],
    [
      'zip',
      linesOf(4).map((each): ObjectLine => {
        const key = `${ARCHIVE.topFolder}/${each.period}.zip`;
        return { ...each, key, file: key, settings: { ...SETTINGS, format: 'zip' } };
      }),
    ],
    ['absent days', [days]],
    ['absent months', [months]],
  ])('the lines of %s count', async (_, lines) => {
    const [small, large] = [await folderOf(), await folderOf()];
    write(small, 1);
    writeLines(large, lines);
    // 5 lines of the small one, 4 of the empty large one, and its content.
    const manifests = new Manifests(ARCHIVE, 12);
    const read = await manifests.of(small);
    await manifests.of(large);
    expect(await manifests.of(small)).not.toBe(read);
  });

  it('one that was removed while it was read does not count', async () => {
    const [slow, large, first, second] = await Promise.all([folderOf(), folderOf(), folderOf(), folderOf()]);
    writeLines(slow, linesOf(3000));
    writeLines(large, linesOf(20));
    for (const folder of [first, second]) write(folder, 1, 2);
    const manifests = new Manifests(ARCHIVE, 12);
    const reading = manifests.of(slow);
    await manifests.of(large);
    await reading;
    const read = await manifests.of(first);
    await manifests.of(second);
    expect(await manifests.of(first)).toBe(read);
  });
});
