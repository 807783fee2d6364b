/** A budget that all runs of one machine share, in files. The processes are real ones, over the built program. */
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makeFolderSync } from '../../../src/files/disk.js';
import { ProcessCount, SharedCount } from '../../../src/http/throttle/window-count.js';
import { WindowMeter } from '../../../src/http/throttle/server-buckets.js';
import { built } from '../../helpers/built.js';
import { openFiles, scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
const DIST = built('http/throttle/window-count.js');
const WINDOW = 28_333_351;

/** Runs of one machine. */
function runs(count: number, folder = join(scratch, randomUUID()), name = 'spot') {
  const warnings: string[] = [];
  const counts = Array.from(
    { length: count },
    () => new SharedCount({ folder, name, warn: (message) => warnings.push(message) }),
  );
  const [first = new SharedCount({ folder, name, warn: () => undefined })] = counts;
  return { folder, files: join(folder, 'budgets', name), warnings, counts, first };
}

/**
 * A process that takes as much as it gets of each budget, in lots of its own size, from a moment that all of them wait
 * for; prints what it got, budget by budget.
 */
const GREEDY = `
const { SharedCount } = await import(${JSON.stringify(DIST)});
const [folder, weight, permits, rounds, startAt] = process.argv.slice(1);
const warn = (message) => process.stderr.write(message);
while (Date.now() < Number(startAt));
const got = [];
for (let round = 0; round < Number(rounds); round += 1) {
  const count = new SharedCount({ folder, name: 'spot-' + round, warn });
  let sum = 0;
  for (let refused = 0; refused < 50; )
    if (count.take(${WINDOW}, Number(weight), { permits: Number(permits), windowMs: 60_000 }) === 0) sum += Number(weight);
    else refused += 1;
  got.push(sum);
}
process.stdout.write(JSON.stringify(got));
`;

async function greedy(folder: string, weight: number, permits: number, rounds: number, startAt: number) {
  const args = [folder, weight, permits, rounds, startAt].map(String);
  const child = spawn(process.execPath, ['--input-type=module', '-e', GREEDY, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(err).toBe('');
  return JSON.parse(out) as number[];
}

const linkTo = (target: string) => symlinkSync.bind(undefined, target);
const makeFile = (path: string): void => {
  writeFileSync(path, 'x');
};
const makeReadOnly = (path: string): void => {
  mkdirSync(path, 0o500);
};

/** Whether the count gave the permits. */
const take = (
  count: Pick<SharedCount, 'take'> | undefined,
  window: number,
  weight: number,
  permits: number,
): boolean => count?.take(window, weight, { permits, windowMs: 60_000 }) === 0;

describe('a shared budget', () => {
  it('is never overdrawn by several processes that take all they can get at the same time', async () => {
    const { folder } = runs(0);
    const PERMITS = 500;
    const ROUNDS = 6;
    const startAt = Date.now() + 1500;
    const got = await Promise.all(
      [1, 3, 7, 2].map((weight) => greedy(folder, weight, PERMITS, ROUNDS, startAt)),
    );
    for (let round = 0; round < ROUNDS; round += 1) {
      const together = got.reduce((sum, all) => sum + (all[round] ?? Number.NaN), 0);
      expect(together).toBeLessThanOrEqual(PERMITS);
      // Lots that met at the very end of the budget are counted and not used.
      expect(together).toBeGreaterThan(PERMITS - 4 * 7 * 2);
    }
  });

  it('is counted as one by the runs of a machine, in any order', () => {
    const takes = fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 9 })), { maxLength: 80 });
    fc.assert(
      fc.property(takes, fc.integer({ min: 9, max: 100 }), (all, permits) => {
        const { folder, counts, warnings } = runs(3);
        let used = 0;
        for (const [who, weight] of all) {
          const isTaken = take(counts[who], WINDOW, weight, permits);
          expect(isTaken).toBe(used + weight <= permits);
          if (isTaken) used += weight;
          expect(counts.map((count) => count.used(WINDOW))).toEqual([used, used, used]);
        }
        expect([warnings, openFiles(folder)]).toEqual([[], []]);
      }),
      { numRuns: 30 },
    );
  });

  it('is one for each bucket, and starts again in each window', () => {
    const { folder, first } = runs(1);
    take(first, WINDOW, 60, 100);
    expect(runs(1, folder, 'futures').first.used(WINDOW)).toBe(0);
    expect(first.used(WINDOW + 1)).toBe(0);
    expect(take(first, WINDOW + 1, 100, 100)).toBe(true);
  });

  it('takes the use of others from the server, and shares it with the other runs', () => {
    const { counts, first, warnings } = runs(2);
    take(first, WINDOW, 5, 100);
    first.raise(WINDOW, 95);
    first.raise(WINDOW, 20);
    expect(counts.map((count) => count.used(WINDOW))).toEqual([95, 95]);
    expect(take(counts[1], WINDOW, 6, 100)).toBe(false);
    expect(take(counts[1], WINDOW, 5, 100)).toBe(true);
    expect(take(first, WINDOW, 1, 100)).toBe(false);
    expect(warnings).toEqual([]);
  });

  it('gives nothing if another run takes the last permits between the look and the write', () => {
    const { counts, first } = runs(2);
    const budget = {
      get permits() {
        if (first.used(WINDOW) === 0) take(first, WINDOW, 60, 100);
        return 100;
      },
      windowMs: 60_000,
    };
    expect([counts[1]?.take(WINDOW, 60, budget), first.used(WINDOW)]).toEqual([Infinity, 120]);
  });

  it('writes nothing when the server tells of nothing new', () => {
    const { folder, first } = runs(1);
    first.raise(WINDOW, 0);
    expect(existsSync(folder)).toBe(false);
  });

  it('takes the files of old windows away once in each window, and no others', () => {
    const { folder, files, first } = runs(1);
    mkdirSync(files, { recursive: true });
    for (const old of [1, 12, WINDOW - 2, WINDOW - 1]) writeFileSync(join(files, `${old}.permits`), '...');
    const foreign = ['README', '2024-report.txt', '7', '1.permits.txt', '1x2.permits', '1.permitsx'];
    for (const name of foreign) writeFileSync(join(files, name), 'not ours');
    take(first, WINDOW, 1, 100);
    expect(readdirSync(files).sort()).toEqual(
      [`${WINDOW - 1}.permits`, `${WINDOW}.permits`, ...foreign].sort(),
    );
    writeFileSync(join(files, '1.permits'), '...');
    take(first, WINDOW, 1, 100);
    expect(existsSync(join(files, '1.permits'))).toBe(true);
    for (let window = WINDOW; window < WINDOW + 20; window += 1) take(runs(1, folder).first, window, 1, 100);
    expect(readdirSync(files).filter((name) => /^\d+\.permits$/.test(name))).toHaveLength(2);
  });

  it.each([
    ['a folder', makeFolderSync],
    ['a link', linkTo(scratch)],
    ['a link that leads nowhere', linkTo(join(scratch, 'missing'))],
  ])('leaves %s with the name of an old window alone, and stays shared', (_, make) => {
    const { folder, files, first, warnings } = runs(1);
    mkdirSync(files, { recursive: true });
    make(join(files, '1.permits'));
    writeFileSync(join(files, '2.permits'), '...');
    expect(take(first, WINDOW, 60, 100)).toBe(true);
    expect(warnings).toEqual([]);
    expect(readdirSync(files)).toEqual(['1.permits', `${WINDOW}.permits`]);
    expect(runs(1, folder).first.used(WINDOW)).toBe(60);
  });

  it('is not written larger than the budget, at any count of the server', () => {
    const { files, first } = runs(1);
    const meter = new WindowMeter(
      { permits: 100, windowMs: 60_000 },
      (nowMs) => ({ fromMs: nowMs, toMs: nowMs }),
      first,
    );
    meter.onUsed(60_000_000, Number.NaN, WINDOW * 60_000);
    expect(statSync(join(files, `${WINDOW}.permits`)).size).toBe(100);
    expect(meter.take(1, WINDOW * 60_000)).toBeGreaterThan(0);
  });

  it.each(['../../evil', 'a/b', 'spot data.test'])('has a file name of its own for each name: %s', (name) => {
    const { folder } = runs(0);
    const { first, warnings } = runs(1, folder, name);
    expect(take(first, WINDOW, 1, 100)).toBe(true);
    expect(readdirSync(join(folder, 'budgets'))).toEqual([encodeURIComponent(name)]);
    expect(existsSync(join(scratch, 'evil'))).toBe(false);
    expect(warnings).toEqual([]);
  });
});

describe('a symbolic link in the state folder', () => {
  it.each([
    ['a file', 'not ours'],
    ['an empty file', ''],
    ['nothing', undefined],
  ])('is not followed in the place of a window, when it leads to %s', (_, words) => {
    const { files, first, warnings } = runs(1);
    const victim = join(mkdtempSync(join(scratch, 'elsewhere-')), 'victim');
    if (words !== undefined) writeFileSync(victim, words);
    mkdirSync(files, { recursive: true });
    symlinkSync(victim, join(files, `${WINDOW}.permits`));
    expect([take(first, WINDOW, 100, 100), take(first, WINDOW, 1, 100)]).toEqual([true, false]);
    expect(warnings).toEqual([expect.stringMatching(/cannot be used \(not a regular file\)/)]);
    expect(existsSync(victim) ? readFileSync(victim, 'utf8') : undefined).toBe(words);
  });

  it('may be the state folder itself', () => {
    const folder = join(scratch, randomUUID());
    symlinkSync(mkdtempSync(join(scratch, 'state-')), folder);
    const { counts, first, warnings } = runs(2, folder);
    expect(take(first, WINDOW, 60, 100)).toBe(true);
    expect(take(counts[1], WINDOW, 41, 100)).toBe(false);
    expect(warnings).toEqual([]);
  });
});

describe('a state folder that cannot be used', () => {
  const canWrite = process.getuid?.() === 0;

  it.each([
    ['a file in its place', '', makeFile],
    ['a file in the place of its budgets', 'budgets', makeFile],
    ['a folder in the place of a window', `budgets/spot/${WINDOW}.permits`, makeFolderSync],
    ['no right to write', '', makeReadOnly],
  ])('costs the sharing, not the run, and is told once: %s', (what, path, make) => {
    const folder = join(scratch, randomUUID());
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    make(join(folder, path));
    const { first, warnings } = runs(1, folder);
    const alone = new ProcessCount();
    for (let round = 0; round < 30; round += 1)
      expect(take(first, WINDOW, 7, 10_000)).toBe(take(alone, WINDOW, 7, 10_000));
    first.raise(WINDOW, 9990);
    expect(take(first, WINDOW, 10, 10_000)).toBe(true);
    expect(take(first, WINDOW, 1, 10_000)).toBe(false);
    expect(take(first, WINDOW + 1, 10_000, 10_000)).toBe(true);
    // Nothing is forbidden to root.
    if (what === 'no right to write' && canWrite) return;
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(folder);
  });

  it.skipIf(process.platform === 'win32')(
    'does not keep a run that finds a pipe in the place of a window',
    () => {
      const { folder, files } = runs(0);
      mkdirSync(files, { recursive: true });
      execFileSync('mkfifo', [join(files, `${WINDOW}.permits`)]);
      const script = `
const { SharedCount } = await import(${JSON.stringify(DIST)});
const warn = (message) => console.log(message);
const count = new SharedCount({ folder: ${JSON.stringify(folder)}, name: 'spot', warn });
const take = () => count.take(${WINDOW}, 60, { permits: 100, windowMs: 60_000 }) === 0;
console.log(take(), take());`;
      const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
        timeout: 30_000,
        encoding: 'utf8',
      });
      expect(said).toMatch(/^the shared budget in .* cannot be used .*\ntrue false\n$/);
    },
  );

  it.skipIf(process.platform === 'win32')('does not count in a pipe, even if there is a reader', () => {
    const { folder, files } = runs(0);
    mkdirSync(files, { recursive: true });
    const pipe = join(files, `${WINDOW}.permits`);
    execFileSync('mkfifo', [pipe]);
    const reader = openSync(pipe, 'r+');
    const { first, warnings } = runs(1, folder);
    expect([take(first, WINDOW, 60, 100), take(first, WINDOW, 60, 100)]).toEqual([true, false]);
    expect(warnings).toEqual([expect.stringContaining('(not a regular file)')]);
    closeSync(reader);
  });

  it('takes back permits of requests that were never sent, when it counts alone', () => {
    const folder = join(scratch, randomUUID());
    writeFileSync(folder, 'x');
    const { first } = runs(1, folder);
    expect(take(first, WINDOW, 100, 100)).toBe(true);
    first.giveBack(WINDOW, 5);
    expect([take(first, WINDOW, 5, 100), take(first, WINDOW, 1, 100)]).toEqual([true, false]);
  });
});
