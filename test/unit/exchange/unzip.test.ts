import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeZip } from '../../../scripts/make-zip.js';
import type { Body } from '../../../src/model/fetch.js';
import { unzip } from '../../../src/exchange/zip/unzip.js';
import type { UnpackOptions } from '../../../src/exchange/exchange.js';

const NAME = 'BTCUSDT-1m-2024-01-15.csv';
const DATA = Buffer.from('1705276800000,42000.10,42000.20\n'.repeat(40));
const NOISE = randomBytes(300_000);
const ONE = { name: NAME, data: DATA };

let folder: string;
let spoolPath: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cryptodl-unzip-'));
  spoolPath = join(folder, 'member.csv');
});
afterEach(() => rmSync(spoolPath, { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function inMemory(bytes: Buffer): Body {
  return { kind: 'memory', bytes };
}

function onDisk(bytes: Buffer): Body {
  const path = join(folder, 'archive.zip');
  writeFileSync(path, bytes);
  return { kind: 'file', path, size: bytes.length };
}

function options(changes: Partial<UnpackOptions> = {}): UnpackOptions {
  return { spoolPath, memoryBytes: 1 << 20, maxBytes: 1 << 30, ...changes };
}

function contentOf(body: Body): Buffer {
  return body.kind === 'memory' ? body.bytes : readFileSync(body.path);
}

/** All four ways through: zip in memory or on disk, member in memory or spooled. */
async function everyWay(zip: Buffer, name = NAME): Promise<Buffer[]> {
  const results: Buffer[] = [];
  for (const body of [inMemory(zip), onDisk(zip)]) {
    results.push(contentOf(await unzip(body, name, options())));
    results.push(contentOf(await unzip(body, name, options({ memoryBytes: 0 }))));
  }
  return results;
}

const FUTURES_EXTRA = Buffer.concat([
  Buffer.from('UT\x09\x00', 'latin1'),
  Buffer.alloc(9),
  Buffer.from('ux\x07\x00', 'latin1'),
  Buffer.alloc(7),
]);
const TWIN = { name: `fsx-data/collector_data/data/spot/monthly/${NAME}`, data: 'not this one\n' };

describe('a zip that is fine', () => {
  it.each([
    ['one deflated member', makeZip([ONE])],
    ['one stored member', makeZip([{ ...ONE, method: 0 }])],
    [
      'the extra fields of the futures archive',
      makeZip([{ ...ONE, localExtra: FUTURES_EXTRA, centralExtra: FUTURES_EXTRA }]),
    ],
    ['a second member in a folder', makeZip([ONE, TWIN])],
    ['a second member in a folder, first', makeZip([TWIN, ONE])],
    [
      'other members at the root',
      makeZip([{ name: 'README.txt', data: '' }, { name: 'a.csv', data: 'x' }, ONE]),
    ],
    ['a data descriptor', makeZip([{ ...ONE, dataDescriptor: true }])],
    ['a data descriptor without signature', makeZip([{ ...ONE, dataDescriptor: 'no-signature' }])],
    ['ZIP64 sizes and end record', makeZip([{ ...ONE, zip64: true }], { zip64: true })],
    ['ZIP64 sizes behind a data descriptor', makeZip([{ ...ONE, zip64: true, dataDescriptor: true }])],
    ['a member comment', makeZip([{ ...ONE, comment: 'hello' }])],
    ['counted bytes before it', makeZip([ONE], { prefix: Buffer.from('#!/bin/sh\n') })],
  ])('gives the member: %s', async (_shape, zip) => {
    for (const content of await everyWay(zip)) expect(content).toEqual(DATA);
  });

  it.each([true, false])('finds a name outside ASCII (UTF-8 flag: %s)', async (utf8) => {
    const name = '币安人生USDT-1m-2025-10.csv';
    const zip = makeZip([{ name, data: DATA, utf8 }]);
    for (const content of await everyWay(zip, name)) expect(content).toEqual(DATA);
  });

  it.each([0, 8])('gives data larger than every buffer (method %i)', async (method) => {
    const zip = makeZip([{ name: NAME, data: Buffer.concat([NOISE, NOISE, NOISE, NOISE, DATA]), method }]);
    const results = await everyWay(zip);
    for (const content of results)
      expect(content.equals(Buffer.concat([NOISE, NOISE, NOISE, NOISE, DATA]))).toBe(true);
  });

  it.each([0, 8])('gives an empty body for an empty member (method %i)', async (method) => {
    const body = await unzip(
      inMemory(makeZip([{ name: NAME, data: '', method }])),
      NAME,
      options({ memoryBytes: 64 }),
    );
    expect(body).toEqual({ kind: 'memory', bytes: Buffer.alloc(0) });
  });

  it('goes to disk above memoryBytes only, and replaces an existing file', async () => {
    writeFileSync(spoolPath, 'x'.repeat(DATA.length * 2));
    const zip = inMemory(makeZip([ONE]));
    expect((await unzip(zip, NAME, options({ memoryBytes: DATA.length }))).kind).toBe('memory');
    const spooled = await unzip(zip, NAME, options({ memoryBytes: DATA.length - 1 }));
    expect(spooled).toEqual({ kind: 'file', path: spoolPath, size: DATA.length });
    expect(readFileSync(spoolPath)).toEqual(DATA);
  });

  it('unpacks a small member out of many empty deflate blocks', async () => {
    const empty = Buffer.from([0, 0, 0, 0xff, 0xff]);
    const compressed = Buffer.concat([...Array.from({ length: 1000 }, () => empty), deflateRawSync(DATA)]);
    const zip = makeZip([{ ...ONE, compressed }]);
    expect(contentOf(await unzip(onDisk(zip), NAME, options({ memoryBytes: DATA.length })))).toEqual(DATA);
  });
});

const PLAIN = makeZip([ONE]);
const PACKED = deflateRawSync(DATA);
const BOMB = deflateRawSync(Buffer.alloc(1 << 20));

function withByte(zip: Buffer, at: number, byte: number): Buffer {
  const copy = Buffer.from(zip);
  copy[at] = byte;
  return copy;
}

// prettier-ignore
const REFUSED: [what: string, zip: Buffer, code: string, message: RegExp][] = [
  ['nothing at all', Buffer.alloc(0), 'zip-broken', /end of central directory/i],
  ['a web page', Buffer.from('<html>404</html>'.repeat(9)), 'zip-broken', /end of central directory/i],
  ['a cut zip', PLAIN.subarray(0, PLAIN.length - 30), 'zip-broken', /end of central directory/i],
  ['uncounted bytes before it', makeZip([ONE], { prefix: Buffer.from('xx'), prefixCounted: false }), 'zip-broken', /signature/],
  ['no member', makeZip([]), 'zip-broken', /no member "BTCUSDT-1m-2024-01-15.csv" in the zip$/],
  ['an un-padded month', makeZip([TWIN, { name: 'BTCUSDT-1m-2024-1-15.csv', data: DATA }]), 'zip-broken', /no member/],
  ['the name in a folder only', makeZip([TWIN]), 'zip-broken', /no member "BTCUSDT-1m-2024-01-15.csv" in the zip$/],
  ['more members than counted', makeZip([ONE, TWIN], { entryCount: 1 }), 'zip-broken', /counts 1 members, the directory holds more/],
  ['fewer members than counted', makeZip([ONE], { entryCount: 2 }), 'zip-broken', /./],
  ['a wrong CRC-32 in both headers', makeZip([{ ...ONE, both: { crc32: 0x5e6f7a8b } }]), 'zip-broken', /^CRC-32 is [0-9a-f]{8}, the zip declares 5e6f7a8b$/],
  ['other data under the right CRC-32', makeZip([{ ...ONE, compressed: deflateRawSync(Buffer.from(DATA).fill('9', 0, 1)) }]), 'zip-broken', /^CRC-32 is/],
  ['a wrong CRC-32, stored', makeZip([{ ...ONE, method: 0, both: { crc32: 1 } }]), 'zip-broken', /^CRC-32 is .* 00000001$/],
  ['a wrong CRC-32 behind a data descriptor', makeZip([{ ...ONE, dataDescriptor: true, central: { crc32: 1 } }]), 'zip-broken', /^CRC-32 is/],
  ['another CRC-32 in the local header', makeZip([{ ...ONE, local: { crc32: 1 } }]), 'zip-broken', /disagree about the CRC-32/],
  ['no CRC-32 in the local header and no descriptor', makeZip([{ ...ONE, local: { crc32: 0 } }]), 'zip-broken', /disagree about the CRC-32/],
  ['no sizes in the local header and no descriptor', makeZip([{ ...ONE, local: { size: 0, compressedSize: 0 } }]), 'zip-broken', /disagree about the packed size/],
  ['another packed size in the local header', makeZip([{ ...ONE, local: { compressedSize: 1 } }]), 'zip-broken', /disagree about the packed size/],
  ['another method in the local header', makeZip([{ ...ONE, local: { method: 0 } }]), 'zip-broken', /disagree about the method/],
  ['encryption in the local header only', makeZip([{ ...ONE, local: { flags: 1 } }]), 'zip-broken', /disagree about the encryption/],
  ['a local header that is none', withByte(PLAIN, 0, 0x51), 'zip-broken', /invalid local file header/],
  ['an offset behind the end', makeZip([{ ...ONE, central: { offset: 0x7fffffff } }]), 'zip-broken', /truncated/],
  ['a ZIP64 offset beyond 2^53', makeZip([{ ...ONE, zip64: true, central: { offset: 2 ** 60 } }]), 'zip-broken', /truncated/],
  ['packed bytes that are not there', makeZip([{ ...ONE, both: { compressedSize: 5000 } }]), 'zip-broken', /file data overflows/],
  ['a damaged deflate stream', makeZip([{ ...ONE, compressed: withByte(PACKED, 0, 0x07) }]), 'zip-broken', /deflate stream is damaged/],
  ['half a deflate stream', makeZip([{ ...ONE, compressed: PACKED.subarray(0, 20) }]), 'zip-broken', /deflate stream is damaged/],
  ['bytes behind the deflate stream', makeZip([{ ...ONE, compressed: Buffer.concat([PACKED, Buffer.from('abc')]) }]), 'zip-broken', /3 bytes follow the deflate stream/],
  ['much behind the deflate stream', makeZip([{ ...ONE, compressed: Buffer.concat([PACKED, NOISE, NOISE]) }]), 'zip-broken', /600000 bytes follow the deflate stream/],
  ['fewer bytes than declared', makeZip([{ ...ONE, both: { size: DATA.length + 1 } }]), 'zip-broken', /unpacks to 1280 bytes, the zip declares 1281/],
  ['stored with two sizes', makeZip([{ ...ONE, method: 0, both: { size: 10 } }]), 'zip-broken', /stored, but|size mismatch/],
  ['strong encryption', makeZip([{ ...ONE, both: { flags: 0x41 } }]), 'zip-unsupported', /encryption/],
  ['a declared size above the limit', makeZip([{ ...ONE, both: { size: 2 ** 31 } }]), 'zip-bomb', /2147483648 bytes, the limit is 1073741824/],
  ['a size no deflate stream can have', makeZip([{ ...ONE, both: { size: 2 ** 29 } }]), 'zip-bomb', /more than 1032 to 1/],
  ['more bytes than declared', makeZip([{ ...ONE, both: { size: DATA.length - 1 } }]), 'zip-bomb', /more than the 1279 bytes/],
  ['a bomb that lies about its size', makeZip([{ ...ONE, compressed: BOMB, both: { size: 5000 } }]), 'zip-bomb', /more than the 5000 bytes/],
  ['more bytes than the declared none', makeZip([{ ...ONE, both: { size: 0 } }]), 'zip-bomb', /more than the 0 bytes/],
];

describe('a large member', () => {
  const LARGE = Buffer.alloc(64 << 20, DATA);

  it.each([
    ['in memory', 1 << 30],
    ['in a file', 0],
  ])('is unpacked beside the event loop: %s', async (_, memoryBytes) => {
    const zip = inMemory(makeZip([{ name: NAME, data: LARGE }]));
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const body = await unzip(zip, NAME, options({ memoryBytes }));
    isOver = true;
    expect(contentOf(body).equals(LARGE)).toBe(true);
    // Two are of the zip's directory; a busy machine may leave few for the member.
    expect(turns).toBeGreaterThan(2);
  });
});

describe('a zip that is not', () => {
  it.each(REFUSED)('is refused: %s', async (_what, zip, code, message) => {
    for (const memoryBytes of [1 << 29, 100]) {
      for (const body of [inMemory(zip), onDisk(zip)]) {
        await expect(unzip(body, NAME, options({ memoryBytes }))).rejects.toMatchObject({
          name: 'CryptodlError',
          code,
          message: expect.stringMatching(message) as unknown,
        });
        expect(existsSync(spoolPath)).toBe(false);
      }
    }
  });

  it('is refused when the file is shorter than it was', async () => {
    const body = onDisk(makeZip([{ name: NAME, data: NOISE, method: 0 }]));
    writeFileSync(join(folder, 'archive.zip'), 'PK');
    await expect(unzip(body, NAME, options())).rejects.toMatchObject({ code: 'zip-broken' });
  });
});

describe('a large member', () => {
  const ROWS = Buffer.alloc(4 << 20, '1704067200000,1,2\n');
  const zip = makeZip([{ name: NAME, data: ROWS }]);

  it('is refused when it is packed better than rows can be; a small one cannot do harm', async () => {
    await expect(unzip(inMemory(zip), NAME, options({ maxRatio: 100 }))).rejects.toMatchObject({
      code: 'zip-bomb',
      message: expect.stringMatching(
        /4194304 unpacked bytes, but only \d+ packed bytes: more than 100 to 1/,
      ) as unknown,
    });
    expect(existsSync(spoolPath)).toBe(false);
    const small = await unzip(inMemory(zip), NAME, options({ maxRatio: 100, memoryBytes: 8 << 20 }));
    expect(small.kind).toBe('memory');
  });
});

describe('errors that the zip does not cause', () => {
  it('passes a full disk through as the error of Node, and leaves no file', async () => {
    // Never /dev/full itself: a failed spool file is removed.
    const path = join(folder, 'full.csv');
    symlinkSync('/dev/full', path);
    const zip = inMemory(makeZip([{ name: NAME, data: NOISE }]));
    await expect(unzip(zip, NAME, options({ memoryBytes: 0, spoolPath: path }))).rejects.toMatchObject({
      name: 'Error',
      code: 'ENOSPC',
    });
    expect(existsSync(path)).toBe(false);
  });

  it('passes a missing folder and a missing zip through', async () => {
    const nowhere = join(folder, 'no', 'such');
    await expect(
      unzip(inMemory(PLAIN), NAME, options({ memoryBytes: 0, spoolPath: nowhere })),
    ).rejects.toMatchObject({ code: 'ENOENT', syscall: 'open' });
    await expect(unzip({ kind: 'file', path: nowhere, size: 99 }, NAME, options())).rejects.toMatchObject({
      code: 'ENOENT',
      syscall: 'open',
    });
  });

  it('passes a read error in the fallback through', async () => {
    const path = join(folder, 'directory');
    mkdirSync(path);
    await expect(unzip({ kind: 'file', path, size: 4096 }, NAME, options())).rejects.toMatchObject({
      code: 'EISDIR',
    });
  });

  it('ends with the reason of the signal', async () => {
    const reason = new Error('enough');
    const zip = inMemory(makeZip([{ name: NAME, data: NOISE }]));
    for (const memoryBytes of [0, 1 << 20]) {
      const early = unzip(zip, NAME, options({ memoryBytes, signal: AbortSignal.abort(reason) }));
      await expect(early).rejects.toBe(reason);
      const controller = new AbortController();
      const late = unzip(zip, NAME, options({ memoryBytes, signal: controller.signal }));
      controller.abort(reason);
      await expect(late).rejects.toBe(reason);
      expect(existsSync(spoolPath)).toBe(false);
    }
  });
});

const PYTHON = 'import sys,zipfile;sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))';

function has(command: string): boolean {
  return spawnSync(command, ['--help']).error === undefined;
}

describe('beside other readers and writers', () => {
  const shapes = {
    plain: makeZip([ONE]),
    stored: makeZip([{ ...ONE, method: 0 }]),
    zip64: makeZip([{ ...ONE, zip64: true }], { zip64: true }),
    descriptor: makeZip([{ ...ONE, dataDescriptor: true }, TWIN]),
  };

  it.skipIf(!has('python3'))('reads what Python reads (apt-get install python3)', async () => {
    for (const zip of Object.values(shapes)) {
      onDisk(zip);
      const theirs = execFileSync('python3', ['-c', PYTHON, join(folder, 'archive.zip'), NAME]);
      expect(await everyWay(zip)).toEqual([theirs, theirs, theirs, theirs]);
    }
  });

  it.skipIf(!has('unzip'))('reads what Info-ZIP reads (apt-get install unzip)', async () => {
    for (const zip of Object.values(shapes)) {
      onDisk(zip);
      const theirs = execFileSync('unzip', ['-p', join(folder, 'archive.zip'), NAME]);
      expect(await everyWay(zip)).toEqual([theirs, theirs, theirs, theirs]);
    }
  });

  it.skipIf(!has('zip'))('reads what Info-ZIP writes, also streamed (apt-get install zip)', async () => {
    for (const name of [NAME, '币安人生USDT-1m-2025-10.csv']) {
      writeFileSync(join(folder, name), DATA);
      const zip = join(folder, 'infozip.zip');
      rmSync(zip, { force: true });
      execFileSync('zip', ['-q', 'infozip.zip', name], { cwd: folder });
      for (const content of await everyWay(readFileSync(zip), name)) expect(content).toEqual(DATA);
      const streamed = execFileSync('zip', ['-q', '-fd', '-', name], { cwd: folder });
      for (const content of await everyWay(streamed, name)) expect(content).toEqual(DATA);
    }
  });

  it.skipIf(!has('python3'))('reads what Python streams with ZIP64 (apt-get install python3)', async () => {
    const script =
      'import sys,zipfile\nz=zipfile.ZipFile(sys.stdout.buffer,"w",8)\n' +
      'with z.open(sys.argv[1],"w",force_zip64=True) as f: f.write(sys.stdin.buffer.read())\nz.close()';
    // A pipe cannot be rewound, so the sizes come behind the data.
    const zip = execFileSync('python3', ['-c', script, NAME], { input: DATA });
    for (const content of await everyWay(zip)) expect(content).toEqual(DATA);
  });
});
