import { linkSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { monthOf } from '../../../src/model/calendar.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { FOLDERS } from '../../../src/lake/layout.js';
import { manifestPlace } from '../../../src/lake/manifest-place.js';
import { HeldObjects } from '../../../src/lake/held-objects.js';
import { emptyManifest, foldManifest, readManifest } from '../../../src/lake/manifest.js';
import { appendManifest } from '../../../src/lake/manifests.js';
import type { ReadLine } from '../../../src/lake/manifest.js';
import { heldObject, revisionOf } from '../../../src/model/manifest-line.js';
import type { ManifestLine, ObjectLine } from '../../../src/model/manifest-line.js';
import { day, objectLine, period, SETTINGS } from '../../helpers/conversion.js';
import { refuse, syncsOf } from '../../helpers/file-handles.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const ARCHIVE = loadBinance().archive;

const scratch = scratchFolder();
mkdirSync(join(scratch, FOLDERS.manifests));
const newFolder = (): Promise<string> => mkdtemp(join(scratch, 'series-'));

function dropped(label: string, format: 'parquet' | 'csv' = 'parquet'): ManifestLine {
  return { v: 1, kind: 'dropped', key: `${label}.zip`, format, at: '2024-02-02T00:00:00.000Z' };
}

function keys(held: HeldObjects): string[] {
  return held.lines().map((line) => line.key);
}

/** 200 bytes and more a line, with characters of several bytes. */
const LINES = ['2024-01-01', '2024-01-02', '2024-01-03'].map((label) =>
  objectLine(label, { tool: `币安 ${label}` }),
);

describe('after a crash', () => {
  it('a torn last line is cut off at every length, and the complete lines stay', async () => {
    const folder = await newFolder();
    const file = manifestPlace(folder).path;
    await appendManifest(folder, LINES);
    const whole = readFileSync(file);
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length), async (length) => {
        writeFileSync(file, whole.subarray(0, length));
        const survivors = whole.subarray(0, length).toString('latin1').split('\n').length - 1;
        const tails: string[] = [];
        const onTail = (text: string): unknown => tails.push(text);
        const { manifest } = await foldManifest(folder, ARCHIVE, () => ({
          manifest: emptyManifest(),
          onLine: () => undefined,
          onTail,
        }));
        expect(manifest.parquet.size).toBe(survivors);
        const tail = whole.subarray(whole.lastIndexOf(0x0a, length - 1) + 1, length).toString();
        expect(tails).toEqual(tail === '' ? [] : [tail]);
        await appendManifest(folder, [objectLine('2024-01-09')]);
        const expected = [...LINES.slice(0, survivors), objectLine('2024-01-09')];
        expect(keys((await readManifest(folder, ARCHIVE)).parquet)).toEqual(expected.map((line) => line.key));
        expect(readFileSync(file, 'utf8')).toBe(expected.map((line) => `${JSON.stringify(line)}\n`).join(''));
      }),
      { numRuns: 200 },
    );
  });

  it('a torn last line longer than one read is cut off as well', async () => {
    const folder = await newFolder();
    await appendManifest(folder, LINES);
    const file = manifestPlace(folder).path;
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, `${whole}{"v":1,"kind":"${'x'.repeat(200_000)}`);
    await appendManifest(folder, [objectLine('2024-01-09')]);
    expect(readFileSync(file, 'utf8')).toBe(`${whole}${JSON.stringify(objectLine('2024-01-09'))}\n`);
  });
});

it('a manifest with a hard link is replaced, and the other name keeps its content, also after a crash', async () => {
  const folder = await newFolder();
  const { path } = manifestPlace(folder);
  await appendManifest(folder, LINES.slice(0, 2));
  const before = readFileSync(path, 'utf8');
  linkSync(path, `${path}.snapshot`);
  writeFileSync(`${path}.partial`, 'of a killed run');
  await appendManifest(folder, LINES.slice(2));
  expect(readFileSync(`${path}.snapshot`, 'utf8')).toBe(before);
  linkSync(path, `${path}.later`);
  await appendManifest(folder, [dropped('2024-01-02')]);
  expect(readFileSync(`${path}.later`, 'utf8')).toBe(`${before}${JSON.stringify(LINES[2])}\n`);
  expect(keys((await readManifest(folder, ARCHIVE)).parquet)).toEqual(['2024-01-01.zip', '2024-01-03.zip']);
});

describe('damage', () => {
  it.each([
    ['no JSON', '{"v":1,'],
    ['an empty line', ''],
    ['no version', JSON.stringify({ ...objectLine('2024-01-02'), v: 'x' })],
    ['a period that is none', JSON.stringify({ ...objectLine('2024-01-02'), period: '2024-02-31' })],
    ['a line without settings', '{"v":1,"kind":"object"}'],
  ])('in the middle (%s) is named with file, line and next step', async (_, line) => {
    const folder = await newFolder();
    const whole = LINES.map((text) => JSON.stringify(text));
    writeFileSync(manifestPlace(folder).path, [whole[0], line, whole[2], ''].join('\n'));
    const reading = readManifest(folder, ARCHIVE);
    await expect(reading).rejects.toMatchObject({ code: 'manifest-damaged', fatal: true });
    await expect(reading).rejects.toThrow(`${manifestPlace(folder).path} line 2 is damaged`);
    await expect(reading).rejects.toMatchObject({
      hint: expect.stringContaining('verify --fix') as string,
    });
  });

  it('is different from a newer version, for which no message suggests to delete lines', async () => {
    const folder = await newFolder();
    writeFileSync(manifestPlace(folder).path, `${JSON.stringify({ ...objectLine('2024-01-02'), v: 2 })}\n`);
    await expect(readManifest(folder, ARCHIVE)).rejects.toMatchObject({
      code: 'manifest-damaged',
      message: `${manifestPlace(folder).path} line 1 has version 2; this cryptodl reads version 1`,
      hint: expect.stringContaining('newer cryptodl') as string,
    });
  });

  it('of some lines is told of each, with all the others between them', async () => {
    const folder = await newFolder();
    const whole = LINES.map((text) => JSON.stringify(text));
    // More than is read at once, so that the numbers go on from one part to the next.
    const many = Array.from({ length: 2000 }, () => whole[2]);
    writeFileSync(
      manifestPlace(folder).path,
      [whole[0], 'null', '{', ...many, '{}', whole[1], 'to'].join('\n'),
    );
    const read: ReadLine[] = [];
    const onLine = (line: ReadLine): unknown => read.push(line);
    const { manifest } = await foldManifest(folder, ARCHIVE, () => ({ manifest: emptyManifest(), onLine }));
    const messages = read.flatMap(({ content }) =>
      content instanceof CryptodlError ? [content.message] : [],
    );
    const file = manifestPlace(folder).path;
    expect(messages).toEqual([2, 3, 2004].map((line) => `${file} line ${line} is damaged`));
    expect(read.length).toBe(2005);
    expect(read.at(-1)).toMatchObject({ number: 2005, text: whole[1] });
    expect(keys(manifest.parquet)).toHaveLength(3);
  });

  it('is different from an absent manifest, which holds nothing', async () => {
    const manifest = await readManifest(join(scratch, 'nowhere'), ARCHIVE);
    expect([manifest.parquet.size, manifest.csv.size, manifest.zip.size]).toEqual([0, 0, 0]);
  });
});

describe('later lines', () => {
  it('replace earlier ones of the same period', async () => {
    const folder = await newFolder();
    await appendManifest(folder, [objectLine('2024-01-01', { etag: 'old' })]);
    await appendManifest(folder, [objectLine('2024-01-01', { etag: 'new' })]);
    const { parquet } = await readManifest(folder, ARCHIVE);
    expect(parquet.lines().map((line) => line.etag)).toEqual(['new']);
  });

  it('of a month replace its days, and no others', () => {
    const held = new HeldObjects();
    for (const label of ['2023-12-31', '2024-01-01', '2024-01-31', '2024-02-01', '2024-01'])
      held.add(objectLine(label));
    expect(keys(held)).toEqual(['2023-12-31.zip', '2024-01.zip', '2024-02-01.zip']);
    expect(held.ofDay(day('2024-01-31'))).toBeUndefined();
    expect([held.hasDay(day('2024-01-31')), held.hasDay(day('2024-02-01'))]).toEqual([false, true]);
    expect(held.ofMonth(monthOf(day('2024-01-31')))?.key).toBe('2024-01.zip');
  });

  it('of a day replace its month, and no other', () => {
    const held = new HeldObjects();
    for (const label of ['2023-12', '2024-01', '2024-01-05']) held.add(objectLine(label));
    expect(keys(held)).toEqual(['2023-12.zip', '2024-01-05.zip']);
  });

  it('that say dropped take the object away, and it can come back', async () => {
    const folder = await newFolder();
    await appendManifest(folder, [...LINES, dropped('2024-01-02')]);
    expect(keys((await readManifest(folder, ARCHIVE)).parquet)).toEqual(['2024-01-01.zip', '2024-01-03.zip']);
    expect((await readManifest(folder, ARCHIVE)).parquet.dropped()).toEqual(['2024-01-02.zip']);
    await appendManifest(folder, [objectLine('2024-01-02')]);
    const { parquet } = await readManifest(folder, ARCHIVE);
    expect([parquet.size, parquet.dropped()]).toEqual([3, []]);
  });

  it('tell the size that a shared file has now', () => {
    const held = new HeldObjects();
    held.add(objectLine('2024-01-02', { fileBytes: 100 }));
    held.add(objectLine('2024-01-01', { fileBytes: 150 }));
    held.add(objectLine('2024-01-03', { fileBytes: 180 }));
    held.add(objectLine('2024-01-02', { fileBytes: 200 }));
    expect(held.lastOfFile('2024-01.parquet')?.fileBytes).toBe(200);
    expect(held.lastOfFile('2024-01.parquet')?.fileBytes).toBe(200);
    expect(held.lastOfFile('2024-02.parquet')).toBeUndefined();
    expect(held.inFile('2024-01.parquet').map((line) => line.period)).toEqual([
      '2024-01-01',
      '2024-01-02',
      '2024-01-03',
    ]);
    expect(held.inFile('2024-02.parquet')).toEqual([]);
  });
});

describe('held objects', () => {
  const heldOf = (...labels: readonly string[]): HeldObjects => {
    const held = new HeldObjects();
    for (const label of labels) held.add(objectLine(label));
    return held;
  };

  it.each<[string, readonly string[], string, string, string]>([
    ['days', ['2024-01-05', '2024-01-03', '2024-01-04'], '2024-01-03', '2024-01-04', '2024-01-06'],
    ['a month', ['2024-02'], '2024-02-01', '2024-02', '2024-03-01'],
    [
      'a month before days',
      ['2024-01', '2024-02-03', '2024-02-02'],
      '2024-01-01',
      '2024-02-02',
      '2024-02-04',
    ],
    ['days before a month', ['2024-01-30', '2024-02'], '2024-01-30', '2024-02', '2024-03-01'],
  ])('of %s has a size, a first day, a newest object and an end', (_, labels, first, newest, end) => {
    const held = heldOf(...labels);
    expect([held.size, held.first(), held.newest()?.period, held.end()]).toEqual([
      labels.length,
      day(first),
      newest,
      day(end),
    ]);
  });

  it('of a repeated line alone are the newest ones', () => {
    const { fileBytes: bytes, fileSha256: sha256 } = objectLine('2024-01-01');
    const held = new HeldObjects();
    held.add(objectLine('2024-01-01', { fileBefore: { bytes, sha256 } }));
    expect(held.newest()?.period).toBe('2024-01-01');
  });

  it('of a file and of a period agree with all lines, after any commits', () => {
    const labels = fc.constantFrom(
      '2024-01',
      '2024-02',
      '2024-01-30',
      '2024-01-31',
      '2024-02-01',
      '2024-02-02',
    );
    const files = fc.constantFrom('a.parquet', 'b.parquet', 'c.parquet');
    const step = fc.record({ label: labels, file: files, isDropped: fc.boolean(), isAsked: fc.boolean() });
    const byLabel = (lines: readonly ObjectLine[]): ObjectLine[] =>
      [...lines].sort((a, b) => (a.period < b.period ? -1 : 1));
    const asked = fc.tuple(fc.nat(70), fc.integer({ min: 1, max: 40 }));
    const check = fc.property(fc.array(step), asked, (steps, [start, days]) => {
      const held = new HeldObjects();
      let expected: ObjectLine[] = [];
      const checkFiles = (): void => {
        for (const name of ['a.parquet', 'b.parquet', 'c.parquet'])
          expect(held.inFile(name)).toEqual(byLabel(expected.filter((line) => line.file === name)));
      };
      for (const { label, file, isDropped, isAsked } of steps) {
        if (isDropped) {
          held.drop(`${label}.zip`);
          expected = expected.filter((line) => line.period !== label);
        } else {
          const line = objectLine(label, { file });
          held.add(line);
          const isOther = ({ period: other }: ObjectLine): boolean =>
            !other.startsWith(label) && !label.startsWith(other);
          expected = [...expected.filter((each) => isOther(each)), line];
        }
        if (isAsked) checkFiles();
      }
      expect(held.lines()).toEqual(byLabel(expected));
      const from = day('2024-01-01') + start;
      const isIn = (line: ObjectLine): boolean => {
        const own = period(line.period);
        return own.from < from + days && from < own.to;
      };
      expect(byLabel(held.overlapping({ from, to: from + days }))).toEqual(
        byLabel(held.lines().filter(isIn)),
      );
      checkFiles();
    });
    fc.assert(check);
  });

  it('has neither first day nor end when it is nothing', () => {
    const held = heldOf();
    expect([held.size, held.first(), held.end(), held.files()]).toEqual([0, undefined, undefined, []]);
  });

  it('names every file that a commit ever wrote', () => {
    const held = heldOf('2024-01-05', '2024-01-06', '2024-02');
    held.drop('2024-02.zip');
    expect(held.files()).toEqual(['2024-01.parquet', '2024-02.parquet']);
  });

  it('of the archive is asked for again by its key, and of REST by its days and with its marks', () => {
    const january = period('2024-01-05');
    const { from, to } = january;
    expect(heldObject(objectLine('2024-01-05', { etag: 'old' }), january)).toEqual({
      key: '2024-01-05.zip',
      period: january,
      heldBytes: objectLine('2024-01-05').bytes,
    });
    const rest = objectLine('2024-01-05', { verified: 'rest' });
    const usual = { key: rest.key, period: january, rest: { from, to, reasonIfEmpty: 'before-history' } };
    expect(heldObject(rest, january)).toEqual(usual);
    const insteadOf = { bytes: 1, sha256: 'c'.repeat(64), at: rest.at, rows: 7, gaps: [] };
    expect(heldObject({ ...rest, open: true, insteadOf }, january)).toEqual({
      ...usual,
      rest: { ...usual.rest, open: true, insteadOf },
    });
  });

  it('is told from another revision by all that the archive said of it', () => {
    const told = { etag: 'e', lastModified: '2024-01-06T00:00:00.000Z', bytes: 7, sha256: 'c'.repeat(64) };
    const line = objectLine('2024-01-05', told);
    expect(revisionOf(line)).toEqual({ ...told, at: line.at });
    const { etag: _etag, lastModified: _lastModified, ...silent } = line;
    expect(revisionOf(silent)).toEqual({ bytes: 7, sha256: told.sha256, at: line.at });
  });
});

it('a manifest is closed when lines were added, and when it was read', async () => {
  const folder = await newFolder();
  await appendManifest(folder, LINES);
  await readManifest(folder, ARCHIVE);
  expect(openFiles(join(scratch, FOLDERS.manifests))).toEqual([]);
});

it('a new manifest becomes an entry of its folder that survives a power failure, and is one from then on', async () => {
  const folder = await newFolder();
  expect(await syncsOf(() => appendManifest(folder, LINES))).toEqual([dirname(manifestPlace(folder).path)]);
  expect(await syncsOf(() => appendManifest(folder, LINES))).toEqual([]);
});

it('a manifest whose folder cannot be synced is named and closed', async () => {
  const folder = await newFolder();
  const failing = syncsOf(
    () => appendManifest(folder, LINES),
    () => refuse('EIO'),
  );
  await expect(failing).rejects.toThrow(`'${manifestPlace(folder).path}'`);
  expect(openFiles(join(scratch, FOLDERS.manifests))).toEqual([]);
});

it('each format is held on its own', async () => {
  const folder = await newFolder();
  const csv = objectLine('2024-01-01', { settings: { ...SETTINGS, format: 'csv' } });
  await appendManifest(folder, [objectLine('2024-01-01'), csv, dropped('2024-01-01')]);
  const manifest = await readManifest(folder, ARCHIVE);
  expect(manifest.parquet.size).toBe(0);
  expect(keys(manifest.csv)).toEqual(['2024-01-01.zip']);
});
