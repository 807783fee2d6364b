import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/model/clock.js';
import { tempPath } from '../../../src/files/temp-files.js';
import { ResponseCache } from '../../../src/http/response-cache.js';
import type { ResponseCacheOptions } from '../../../src/http/response-cache.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-11-21T08:00:00Z');

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function copiesOn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.includes('.json.gz'));
}

function copiesIn(
  folder: string,
  more: Partial<ResponseCacheOptions> = {},
): ResponseCache & { said: string[] } {
  const said: string[] = [];
  const warn = (message: string): void => void said.push(message);
  const copies = new ResponseCache({
    folder,
    nowMs: NOW,
    isReadOnly: false,
    clock: systemClock,
    warn,
    ...more,
  });
  return Object.assign(copies, { said });
}

it('a copy can be read by this process and others; the last of many writes counts', async () => {
  const folder = mkdtempSync(join(scratch, 'c-'));
  const copies = copiesIn(folder);
  await Promise.all(Array.from({ length: 100 }, (_, name) => copies.keep(`n${name}`, 'v')));
  for (let time = 0; time < 3; time += 1) await copies.keep('n99', `v${time}`);
  for (const reader of [copies, copiesIn(folder)]) {
    expect(await reader.read('n99', textOf)).toEqual({ atMs: NOW, value: 'v2' });
    expect(await reader.read('c', textOf)).toBeUndefined();
    expect([reader.said, copiesOn(folder).length]).toEqual([[], 100]);
  }
});

it.each([
  ['large', randomBytes(100_000).toString('hex')],
  ['large only when it is unpacked', 'x'.repeat(100_000)],
  ['not ASCII', '币'.repeat(10_000)],
])('a copy is read as it was kept if it is %s', async (_, value) => {
  const folder = mkdtempSync(join(scratch, 'c-'));
  const copies = copiesIn(folder);
  await copies.keep('a', value);
  await copies.close();
  const reader = copiesIn(folder);
  expect((await reader.read('a', textOf))?.value === value).toBe(true);
  expect(reader.said).toEqual([]);
});

it('a copy that is too old is not used, and is removed', async () => {
  const folder = mkdtempSync(join(scratch, 'c-'));
  const copies = copiesIn(folder);
  await copies.keep('old', 'x', NOW - 31 * DAY_MS);
  await copies.keep('young', 'x', NOW - 29 * DAY_MS);
  await copies.close();
  expect(await copiesIn(folder).read('old', textOf)).toBeUndefined();
  expect(await copiesIn(folder).read('young', textOf)).toBeDefined();
  // No process has this number.
  const left = tempPath(folder, 'copy').replace(`.${process.pid}.`, '.4194305.');
  writeFileSync(left, '');
  const ago = Date.now() / 1000 - 31 * 86_400;
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), ago, ago);
  const last = copiesIn(folder);
  await last.keep('new', 'x');
  await last.close();
  expect(copiesOn(folder)).toHaveLength(1);
});

it.each([
  ['half a day', DAY_MS / 2, 2],
  ['a day', DAY_MS + 1000, 1],
  ['a time when the clock was wrong', -2 * DAY_MS, 1],
])('the folder is cleaned again after %s, or not yet', async (_, agoMs, left) => {
  const folder = mkdtempSync(join(scratch, 'c-'));
  const [copies, next] = [copiesIn(folder), copiesIn(folder)];
  await copies.keep('a', 'x');
  await copies.close();
  const [old, cleaned] = [Date.now() - 31 * DAY_MS, Date.now() - agoMs].map((ms) => ms / 1000);
  for (const name of copiesOn(folder)) utimesSync(join(folder, name), old ?? 0, old ?? 0);
  utimesSync(join(folder, 'pruned'), cleaned ?? 0, cleaned ?? 0);
  await next.keep('b', 'x');
  await next.close();
  expect(copiesOn(folder)).toHaveLength(left);
});

/** What is read of a copy after a change, the count of warnings, and the copies that are left. */
async function readAfter(change: (file: string) => void, read = textOf): Promise<unknown[]> {
  const folder = mkdtempSync(join(scratch, 'c-'));
  const copies = copiesIn(folder);
  await copies.keep('a', 'x');
  await copies.close();
  change(join(folder, copiesOn(folder)[0] ?? ''));
  const reader = copiesIn(folder);
  return [await reader.read('a', read), reader.said.length, copiesOn(folder)];
}
const DAMAGED = [undefined, 1, []];

it('a copy that is larger than any answer of a host is damaged', async () => {
  // Only zeros follow, which a reader of gzip ignores.
  const long = (file: string): void => {
    truncateSync(file, 64 * 1024 * 1024 + 1);
  };
  expect(await readAfter(long)).toEqual(DAMAGED);
  const copy = JSON.stringify({ v: 1, name: 'a', at: NOW, value: 'x' }).padEnd(65 * 1024 * 1024);
  const unpacked = (file: string): void => {
    writeFileSync(file, gzipSync(copy));
  };
  expect(await readAfter(unpacked)).toEqual(DAMAGED);
});

it('content of another name, or unreadable content, is damaged', async () => {
  const same = (): void => undefined;
  expect(await readAfter(same, () => undefined)).toEqual(DAMAGED);
});
