/** The parts of a debug dump: its short lists, its files, and the heap. */
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { array, assert, integer, nat, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { debugName, pathBeside, pruneDebugFiles, writeWhole } from '../../src/debug/debug-files.js';
import { heapGrowth } from '../../src/debug/process-state.js';
import { RequestNotes } from '../../src/debug/request-notes.js';
import { TopList } from '../../src/debug/top-list.js';
import { CryptodlError } from '../../src/model/errors.js';
import { systemClock } from '../../src/model/clock.js';
import { scratchFolder } from '../helpers/folders.js';

describe('a top list', () => {
  it('has the largest entries in their order, the earlier of equal ones, and makes no others', () => {
    assert(
      property(array(nat(30)), integer({ min: 1, max: 8 }), (values, most) => {
        const list = new TopList<string>(most);
        let made = 0;
        for (const [at, value] of values.entries()) {
          list.add(value, () => {
            made += 1;
            return `${value} ${at}`;
          });
        }
        const sorted = [...values.entries()].sort(([at, one], [later, other]) => other - one || at - later);
        expect(list.entries).toEqual(sorted.slice(0, most).map(([at, value]) => `${value} ${at}`));
        expect(made).toBeLessThanOrEqual(values.length);
        const least = Math.min(...values.slice(0, most));
        const isNoCandidate = values.slice(most).every((value) => value <= least);
        if (isNoCandidate) expect(made).toBe(Math.min(most, values.length));
      }),
    );
  });
});

describe('the notes of requests', () => {
  const attempt = (number: number, error?: unknown) => ({
    request: { url: `https://host:81/a/${number}.zip?x=1`, bucket: 'archive' },
    attemptId: `trace/${number}`,
    begunAt: 0,
    sentAt: 5,
    endedAt: 10 + number,
    firstByteMs: 3.6,
    status: error === undefined ? 200 : 503,
    error,
  });

  it('keep the twenty slowest attempts and the twenty last errors', () => {
    const notes = new RequestNotes(systemClock);
    for (let number = 1; number <= 1000; number += 1)
      notes.attempt(
        attempt(
          number,
          number % 2 === 0 ? new CryptodlError('http-server-error', `no ${number}`) : undefined,
        ),
      );
    expect(notes.slowest.map(({ totalMs }) => totalMs)).toEqual(
      Array.from({ length: 20 }, (_, at) => 1010 - at),
    );
    expect(notes.slowest[1]).toEqual({
      at: expect.any(String) as string,
      host: 'host:81',
      path: '/a/999.zip?x=1',
      status: 200,
      attempt: 'trace/999',
      beforeSentMs: 5,
      firstByteMs: 4,
      totalMs: 1009,
      error: null,
    });
    expect(notes.errors).toHaveLength(20);
    expect(notes.errors[0]).toMatchObject({
      code: 'http-server-error',
      message: 'no 1000',
      attempt: { path: '/a/1000.zip?x=1', status: 503 },
    });
  });
});

describe('the files of dumps', () => {
  const scratch = scratchFolder();

  it('are at most ten in a lake; foreign files, folders and links stay', async () => {
    const lake = join(scratch, 'lake');
    mkdirSync(lake);
    const own = Array.from({ length: 15 }, (_, at) => debugName(Date.UTC(2026, 10, 1 + at)));
    for (const [at, name] of own.entries())
      writeFileSync(join(lake, `${name}.${['json', 'cpuprofile', 'heapsnapshot'][at % 3]}`), '');
    const others = ['debug-notes.json', 'debug-20200101T000000000Z-1.txt', 'lock.json'];
    for (const name of others) writeFileSync(join(lake, name), '');
    mkdirSync(join(lake, 'debug-20200101T000000000Z-1.json'));
    symlinkSync('lock.json', join(lake, 'debug-20200102T000000000Z-1.json'));
    await pruneDebugFiles(lake);
    const left = readdirSync(lake).sort();
    const isOwn = (name: string): boolean => own.some((stem) => name.startsWith(stem));
    expect(left.filter(isOwn).map((name) => name.split('.')[0])).toEqual(own.slice(-10));
    expect(left.filter((name) => !isOwn(name))).toEqual(
      [...others, 'debug-20200101T000000000Z-1.json', 'debug-20200102T000000000Z-1.json'].sort(),
    );
  });

  it('appear whole or not at all', async () => {
    const folder = join(scratch, 'whole');
    mkdirSync(folder);
    const path = join(folder, 'dump.json');
    await expect(
      writeWhole(path, async (file) => {
        await file.writeFile('half');
        expect(readdirSync(folder)).not.toContain('dump.json');
        throw new Error('halted');
      }),
    ).rejects.toThrow('halted');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('of a signal lie beside the file of --debug-dump', () => {
    expect(pathBeside('/var/a.json', Date.UTC(2026, 10, 21, 7))).toBe(
      `/var/a-20261121T070000000Z-${process.pid}`,
    );
  });
});

describe('the growth of the heap', () => {
  it('is given for the ten spaces that changed most', () => {
    const spaces = (factor: number) =>
      Object.fromEntries(
        Array.from({ length: 12 }, (_, at) => [`space-${at}`, { usedBytes: at * factor, committedBytes: 0 }]),
      );
    const growth = heapGrowth(spaces(2), spaces(1));
    expect(Object.entries(growth)[0]).toEqual(['space-11', -11]);
    expect(Object.keys(growth)).toHaveLength(10);
  });
});
