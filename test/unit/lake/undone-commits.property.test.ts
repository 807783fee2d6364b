/** Manifests after any series of commits, of which some are killed before their files have their names: the lines that count are those of the files. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ObjectLine } from '../../../src/model/manifest-line.js';
import { emptyManifest, foldManifest, readManifest } from '../../../src/lake/manifest.js';
import { appendManifest } from '../../../src/lake/manifests.js';
import type { ReadLine } from '../../../src/lake/manifest.js';
import { linesOfRemoved, repeatLine } from '../../../src/lake/undone-commits.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { objectLine } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { sized } from '../../helpers/tier-size.js';

const ARCHIVE = loadBinance().archive;
const SERIES = 'binance/um/metrics/symbol=BTCUSDT';
const MONTH = '2024-01.parquet';
const scratch = scratchFolder();

const dayAt = (day: number): string => `2024-01-${String(day).padStart(2, '0')}`;
const keyAt = (day: number): string =>
  `data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-${dayAt(day)}.zip`;

/** A commit, which is killed after some of its changes. */
interface Step {
  /** Days to fetch, with their revision. */
  readonly days: readonly number[];
  readonly revision: number;
  /** `few`: only the fetched days go into day files. `repeat`: the line of a held day again, as for a revision that is refused. */
  readonly to: 'month' | 'days' | 'few' | 'repeat';
  /** Changes before the kill. A commit has at most 9. */
  readonly actions: number;
}

const steps: fc.Arbitrary<Step> = fc.record({
  days: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { minLength: 1 }),
  revision: fc.integer({ min: 1, max: 2 }),
  to: fc.constantFrom('month', 'days', 'few', 'repeat'),
  // Most commits end, or are killed soon after their lines.
  actions: fc.oneof(fc.integer({ min: 0, max: 10 }), fc.constantFrom(1, 2), fc.constant(10)),
});

/** The content of each file is its days with their revisions, so that a reader of the folder sees what is in it. */
const contentOf = (days: ReadonlyMap<number, number>): string =>
  [...days]
    .sort(([a], [b]) => a - b)
    .map((pair) => pair.join(':'))
    .join(' ');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

class Lake {
  readonly folder: string;
  #at = 0;

  constructor(root: string) {
    this.folder = join(root, SERIES);
    mkdirSync(this.folder, { recursive: true });
  }

  /** The days that the manifest says are held, by file, compared with the files. */
  async held(): Promise<Map<number, number>> {
    const { parquet } = await readManifest(this.folder, ARCHIVE);
    const held = new Map<number, number>();
    for (const { period, file, bytes } of parquet.lines()) {
      const path = join(this.folder, file);
      if (!existsSync(path))
        throw new Error(`a line says that ${file} has ${period}, and there is no such file`);
      const content = readFileSync(path, 'utf8');
      const day = Number(period.slice(-2));
      const isRight =
        sha256(content) === parquet.lastOfFile(file)?.fileSha256 &&
        content.split(' ').includes(`${day}:${bytes}`);
      if (!isRight) throw new Error(`${file} has "${content}", a line says that it has ${day}:${bytes}`);
      held.set(day, bytes);
    }
    return held;
  }

  /** Commits like the program: new files, lines, replaced files, removals. Resolves with false if nothing is to be fetched, or the program refuses it. */
  async commit({ days, revision, to, actions }: Step): Promise<boolean> {
    const { parquet } = await readManifest(this.folder, ARCHIVE);
    if (to === 'repeat') {
      const [line] = parquet.lines();
      if (line !== undefined) await appendManifest(this.folder, [repeatLine(parquet, line)]);
      return false;
    }
    const held = new Map(parquet.lines().map(({ period, bytes }) => [Number(period.slice(-2)), bytes]));
    const fetched = new Map([...days].map((day) => [day, revision]));
    const all = to === 'few' ? fetched : new Map([...held, ...fetched]);
    const files = new Map<string, ReadonlyMap<number, number>>();
    if (to === 'month') files.set(MONTH, all);
    else for (const [day, bytes] of all) files.set(`${dayAt(day)}.parquet`, new Map([[day, bytes]]));
    const isReplaced = ({ period }: ObjectLine): boolean => all.has(Number(period.slice(-2)));
    const touched = new Set(
      parquet
        .lines()
        .filter(isReplaced)
        .map(({ file }) => file),
    );
    const dead = [...touched].filter((file) => !files.has(file));
    // The program refuses to take single days out of a file.
    if (!dead.every((file) => parquet.inFile(file).every(isReplaced))) return false;
    // A commit of the same layout writes only the files of the fetched days.
    const made = [...files].filter(
      ([, content]) => dead.length > 0 || [...content.keys()].some((day) => fetched.has(day)),
    );
    this.#at += 1;
    const at = new Date(this.#at).toISOString();
    const written = made.flatMap(([file, content]): ObjectLine[] => {
      const text = contentOf(content);
      const fileBefore = parquet.fileBefore(file);
      const news = [...content].filter(([day]) => dead.length > 0 || fetched.has(day));
      return news.map(([day, bytes]) => ({
        ...objectLine(dayAt(day), { key: keyAt(day) }),
        bytes,
        file,
        fileBytes: text.length,
        fileSha256: sha256(text),
        at,
        ...(fileBefore === undefined ? {} : { fileBefore }),
      }));
    });
    const rename =
      ([file, content]: (typeof made)[number]) =>
      (): unknown => {
        writeFileSync(join(this.folder, file), contentOf(content));
        return undefined;
      };
    const isNew = new Set(
      made.map(([file]) => file).filter((file) => parquet.fileBefore(file) === undefined),
    );
    const changes = [
      ...made.filter(([file]) => isNew.has(file)).map(rename),
      () => appendManifest(this.folder, [...linesOfRemoved(parquet, dead, at), ...written]),
      ...made.filter(([file]) => !isNew.has(file)).map(rename),
      ...dead.map((file) => () => {
        rmSync(join(this.folder, file));
      }),
    ];
    for (const change of changes.slice(0, actions)) await change();
    return true;
  }
}

it('count the lines of the files that are there, and no others', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 6 }), async (all) => {
      const lake = new Lake(await mkdtemp(join(scratch, 'lake-')));
      let before = await lake.held();
      for (const step of all) {
        const isDone = await lake.commit(step);
        const held = await lake.held();
        // A committed day stays; it may have the new revision.
        for (const [day, bytes] of before) expect([bytes, step.revision]).toContain(held.get(day));
        if (step.actions >= 9 && isDone)
          for (const day of step.days) expect(held.get(day)).toBe(step.revision);
        before = held;
      }
    }),
    {
      numRuns: sized(400, 150),
      // A killed commit adds a day to a file that a later one removes, and then the file comes back.
      examples: [
        [
          [
            { days: [1], revision: 1, to: 'month', actions: 10 },
            { days: [2], revision: 1, to: 'month', actions: 1 },
            { days: [1], revision: 1, to: 'few', actions: 10 },
            { days: [1], revision: 1, to: 'month', actions: 10 },
          ],
        ],
      ],
    },
  );
});

describe('of two commits that replace the same file', () => {
  const contentAt = (day: number): string => `1:1 ${day}:1`;
  const lineOf = (day: number, content: string, at: number): ObjectLine => ({
    ...objectLine(dayAt(day), { key: keyAt(day) }),
    file: MONTH,
    fileBytes: content.length,
    fileSha256: sha256(content),
    at: new Date(at).toISOString(),
  });
  const fileBefore = { bytes: 3, sha256: sha256('1:1') };

  const written = [
    lineOf(1, '1:1', 1),
    { ...lineOf(2, contentAt(2), 2), fileBefore },
    { ...lineOf(3, contentAt(33), 3), fileBefore },
  ];

  /** Two writers of a bucket have put their lines, of the days 2 and 3. */
  async function twoWriters(): Promise<Lake> {
    const lake = new Lake(await mkdtemp(join(scratch, 'lake-')));
    await appendManifest(lake.folder, written);
    return lake;
  }

  const CASES: readonly (readonly [string, string, readonly number[]])[] = [
    ['neither, while the file is the one before', '1:1', [1]],
    ['the first, if its file is there', contentAt(2), [1, 2]],
    ['the second, if its file is there', contentAt(33), [1, 3]],
  ];

  it.each(CASES)('counts %s', async (_, content, days) => {
    const { folder } = await twoWriters();
    writeFileSync(join(folder, MONTH), content);
    const { parquet } = await readManifest(folder, ARCHIVE);
    expect(parquet.lines().map(({ period }) => Number(period.slice(-2)))).toEqual(days);
    expect(parquet.lastOfFile(MONTH)?.fileSha256).toBe(sha256(content));
  });

  it('counts those of the files at its last reading, also if both files are replaced while it is read', async () => {
    const csv = written.map((line): ObjectLine => {
      return { ...line, file: '2024-01.csv', settings: { ...line.settings, format: 'csv' } };
    });
    const state = fc.tuple(fc.constantFrom(...CASES), fc.constantFrom(...CASES));
    const check = fc.asyncProperty(state, fc.array(state, { maxLength: 8 }), async (first, others) => {
      const { folder } = await twoWriters();
      await appendManifest(folder, csv);
      let readings = 0;
      let now = first;
      const fold = await foldManifest(folder, ARCHIVE, () => {
        now = [first, ...others][readings] ?? now;
        readings += 1;
        expect(readings).toBeLessThanOrEqual(Math.min(5, others.length + 2));
        for (const [at, file] of [MONTH, '2024-01.csv'].entries())
          writeFileSync(join(folder, file), now[at]?.[1] ?? '');
        const [read, undone]: [number[], string[]] = [[], []];
        const onLine = ({ number }: ReadLine): unknown => read.push(number);
        return {
          manifest: emptyManifest(),
          read,
          undone,
          onLine,
          onUndone: (text: string) => undone.push(text),
        };
      });
      // After five readings, the files may be others again.
      if (readings === 5 && others.length > 3) return;
      const held = [fold.manifest.parquet, fold.manifest.csv].map((of) =>
        of.lines().map(({ period }) => Number(period.slice(-2))),
      );
      expect(held).toEqual(now.map(([, , days]) => days));
      expect([fold.read.length, fold.undone.length]).toEqual([held.flat().length, 6 - held.flat().length]);
    });
    await fc.assert(check, { numRuns: sized(300, 60) });
  });

  it('counts the one that a later commit replaces', async () => {
    const { folder } = await twoWriters();
    const last = '1:1 2:1 4:1';
    const before = { bytes: contentAt(2).length, sha256: sha256(contentAt(2)) };
    await appendManifest(folder, [{ ...lineOf(4, last, 4), fileBefore: before }]);
    writeFileSync(join(folder, MONTH), last);
    const { parquet } = await readManifest(folder, ARCHIVE);
    expect(parquet.lines().map(({ period }) => Number(period.slice(-2)))).toEqual([1, 2, 4]);
  });
});
