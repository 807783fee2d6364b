import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { aggTradeChunks, makeLargeZip } from '../../scripts/make-large-zip.js';
import type { Body } from '../../src/http/fetch.js';
import { unzip } from '../../src/convert/unzip/unzip.js';

const NAME = '币安人生USDT-aggTrades-2025-03.csv';
const MARCH = { fromMs: Date.UTC(2025, 2, 1), spanMs: 31 * 24 * 3600_000 };
const SIZE = { rows: 25_000, ...MARCH };
const PYTHON = 'import sys,zipfile;sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))';
const CAP = 1 << 24;

const csv = Buffer.concat([...aggTradeChunks(SIZE)]);
let folder: string;
let path: string;
let facts: Awaited<ReturnType<typeof makeLargeZip>>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cryptodl-large-zip-'));
  path = join(folder, 'large.zip');
  facts = await makeLargeZip(path, { name: NAME, chunks: aggTradeChunks(SIZE) });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function has(command: string): boolean {
  return spawnSync(command, ['--help']).error === undefined;
}

/** As cryptodl reads it: from disk, the member spooled to disk. */
async function unpacked(zip: string, name: string): Promise<Buffer> {
  const body: Body = { kind: 'file', path: zip, size: statSync(zip).size };
  const spoolPath = join(folder, 'member.csv');
  const member = await unzip(body, name, { spoolPath, memoryBytes: 0, maxBytes: CAP });
  return member.kind === 'memory' ? member.bytes : readFileSync(member.path);
}

describe('a large zip', () => {
  it('knows its rows, its sizes and its digest', () => {
    const zip = readFileSync(path);
    expect(facts).toEqual({
      rows: SIZE.rows,
      csvBytes: csv.length,
      zipBytes: zip.length,
      sha256: createHash('sha256').update(zip).digest('hex'),
    });
    expect(zip.length).toBeLessThan(csv.length / 2);
  });

  it('has its sizes in ZIP64 fields only, in both headers and at the end', () => {
    const zip = readFileSync(path);
    const nameBytes = Buffer.byteLength(NAME);
    const packedBytes = zip.readBigUInt64LE(30 + nameBytes + 4 + 8);
    expect([zip.readUInt32LE(18), zip.readUInt32LE(22)]).toEqual([0xffffffff, 0xffffffff]);
    expect(zip.readBigUInt64LE(30 + nameBytes + 4)).toBe(BigInt(csv.length));

    const directory = 30 + nameBytes + 20 + Number(packedBytes);
    expect(zip.readUInt32LE(directory)).toBe(0x02014b50);
    expect(zip.readUInt16LE(directory + 6)).toBe(45);
    expect([20, 24, 42].map((at) => zip.readUInt32LE(directory + at))).toEqual([
      0xffffffff, 0xffffffff, 0xffffffff,
    ]);
    const extra = directory + 46 + nameBytes + 4;
    expect([0, 8, 16].map((at) => zip.readBigUInt64LE(extra + at))).toEqual([
      BigInt(csv.length),
      packedBytes,
      0n,
    ]);

    const zip64End = zip.length - 22 - 20 - 56;
    expect(zip.readUInt32LE(zip64End)).toBe(0x06064b50);
    expect(zip.readBigUInt64LE(zip64End + 40)).toBe(BigInt(zip64End - directory));
    expect(zip.readBigUInt64LE(zip64End + 48)).toBe(BigInt(directory));
    expect(zip.readBigUInt64LE(zip.length - 22 - 20 + 8)).toBe(BigInt(zip64End));
    expect(zip.readUInt32LE(zip.length - 22 + 16)).toBe(0xffffffff);
  });

  it('is read back by cryptodl', async () => {
    expect((await unpacked(path, NAME)).equals(csv)).toBe(true);
  });

  it.skipIf(!has('python3'))('is read back by Python (apt-get install python3)', () => {
    const theirs = execFileSync('python3', ['-c', PYTHON, path, NAME], { maxBuffer: CAP });
    expect(theirs.equals(csv)).toBe(true);
  });

  it.skipIf(!has('unzip'))('is read back by Info-ZIP (apt-get install unzip)', () => {
    execFileSync('unzip', ['-tq', path]);
    expect(execFileSync('unzip', ['-p', path], { maxBuffer: CAP }).equals(csv)).toBe(true);
  });

  it('is the same for the same chunks, and replaces an existing file', async () => {
    const other = join(folder, 'other.zip');
    await makeLargeZip(other, { name: NAME, chunks: aggTradeChunks({ ...SIZE, rows: 50_000 }) });
    const again = await makeLargeZip(other, { name: NAME, chunks: aggTradeChunks(SIZE) });
    expect(again).toEqual(facts);
    expect(statSync(other).size).toBe(facts.zipBytes);
  });

  it('takes chunks of any kind: async, cut anywhere, none', async () => {
    const other = join(folder, 'other.zip');
    async function* pieces(): AsyncGenerator<Buffer> {
      await Promise.resolve();
      yield Buffer.from('id,pr');
      yield Buffer.from('ice\n1,');
      yield Buffer.from('2\n');
    }
    expect(await makeLargeZip(other, { name: 'a.csv', chunks: pieces() })).toMatchObject({
      rows: 2,
      csvBytes: 13,
    });
    expect((await unpacked(other, 'a.csv')).toString()).toBe('id,price\n1,2\n');
    expect(await makeLargeZip(other, { name: 'a.csv', chunks: [] })).toMatchObject({ rows: 0, csvBytes: 0 });
    expect(await unpacked(other, 'a.csv')).toHaveLength(0);
  });

  it('passes on errors of the chunks', async () => {
    function* failing(): Generator<Buffer> {
      yield Buffer.from('1\n');
      throw new Error('no more');
    }
    const broken = makeLargeZip(join(folder, 'broken.zip'), { name: 'a.csv', chunks: failing() });
    await expect(broken).rejects.toThrow('no more');
  });
});

describe('its made-up aggTrades', () => {
  it.each([
    ['microseconds', MARCH.fromMs, 1000, 16],
    ['milliseconds before 2025', Date.UTC(2024, 1, 1), 1, 13],
  ])('are well formed, with times in %s', (_unit, fromMs, perMs, digits) => {
    const text = Buffer.concat([...aggTradeChunks({ ...SIZE, fromMs })]).toString();
    const lines = text.split('\n');
    expect(lines.pop()).toBe('');
    expect(lines).toHaveLength(SIZE.rows);
    const shape = new RegExp(
      String.raw`^\d{10},\d{5}\.\d{8},\d\.\d{8},\d{10},\d{10},\d{${digits}},(True|False),True$`,
    );
    let before = { id: 999_999_999, last: 1_999_999_999, time: fromMs * perMs };
    const flags = new Set<string | undefined>();
    let wrong = 0;
    for (const line of lines) {
      const [id, , , first, last, time] = line.split(',').map(Number) as [
        number,
        0,
        0,
        number,
        number,
        number,
      ];
      const isNext =
        id === before.id + 1 && first === before.last + 1 && last >= first && time >= before.time;
      if (!isNext || !shape.test(line)) wrong += 1;
      before = { id, last, time };
      flags.add(line.split(',')[6]);
    }
    expect(wrong).toBe(0);
    expect(flags.size).toBe(2);
    const end = (fromMs + SIZE.spanMs) * perMs;
    expect(before.time).toBeLessThan(end);
    expect(before.time).toBeGreaterThan(end - (2 * SIZE.spanMs * perMs) / SIZE.rows);
  });

  it('come in chunks of less than a megabyte, of whole rows, and none for no rows', () => {
    for (const chunk of aggTradeChunks(SIZE)) {
      expect(chunk.length).toBeLessThan(1 << 20);
      expect(chunk.at(-1)).toBe(0x0a);
    }
    expect([...aggTradeChunks({ ...SIZE, rows: 0 })]).toEqual([]);
  });
});
