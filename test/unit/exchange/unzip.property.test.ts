import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeZip } from '../../../scripts/make-zip.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { unzip } from '../../../src/exchange/zip/unzip.js';
import { sized } from '../../helpers/tier-size.js';

const NAME = 'BTCUSDT-1m-2024-01.csv';
const DATA = Buffer.from('1704067200000,42283.58,42298.62,42261.02\n'.repeat(8));
const ONE = { name: NAME, data: DATA };
const OTHER = { name: `fsx-data/${NAME}`, data: DATA };

/** Different zips of one content: a splice of two of them may be a good zip, but never of other content. */
const SHAPES = [
  makeZip([ONE]),
  makeZip([{ ...ONE, method: 0 }]),
  makeZip([{ ...ONE, dataDescriptor: true }]),
  makeZip([{ ...ONE, zip64: true }], { zip64: true }),
  makeZip([OTHER, ONE], { comment: 'two' }),
];

let folder: string;
let spoolPath: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cryptodl-unzip-'));
  spoolPath = join(folder, 'member.csv');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

function at(zip: Buffer, where: number): number {
  return Math.floor(where * zip.length);
}

type Mutation = (zip: Buffer) => Buffer;

const flip = fc.tuple(place, fc.nat(7)).map(([where, bit]): Mutation => (zip) => {
  const copy = Buffer.from(zip);
  const index = at(zip, where);
  copy.writeUInt8(copy.readUInt8(index) ^ (1 << bit), index);
  return copy;
});
const overwrite = fc
  .tuple(place, fc.uint8Array({ minLength: 1, maxLength: 8 }))
  .map(([where, bytes]): Mutation => (zip) => {
    const copy = Buffer.from(zip);
    Buffer.from(bytes).copy(copy, at(zip, where));
    return copy;
  });
const extreme = fc
  .tuple(place, fc.constantFrom(0, 0xffff, 0xffffffff, 0x7fffffff))
  .map(([where, value]): Mutation => (zip) => {
    const copy = Buffer.from(zip);
    copy.writeUInt32LE(value, Math.min(at(zip, where), zip.length - 4));
    return copy;
  });
const cutOut = fc.tuple(place, place).map(([from, to]): Mutation => (zip) => {
  const [start, end] = [at(zip, Math.min(from, to)), at(zip, Math.max(from, to))];
  return Buffer.concat([zip.subarray(0, start), zip.subarray(end)]);
});
const cutOff = place.map(
  (where): Mutation =>
    (zip) =>
      zip.subarray(0, at(zip, where)),
);
const splice = fc.tuple(fc.constantFrom(...SHAPES), place, place).map(
  ([other, from, to]): Mutation =>
    (zip) =>
      Buffer.concat([zip.subarray(0, at(zip, from)), other.subarray(at(other, to))]),
);
const insert = fc.tuple(place, fc.uint8Array({ minLength: 1, maxLength: 40 })).map(
  ([where, bytes]): Mutation =>
    (zip) =>
      Buffer.concat([zip.subarray(0, at(zip, where)), bytes, zip.subarray(at(zip, where))]),
);
const swap = fc
  .tuple(place, place, fc.integer({ min: 1, max: 60 }))
  .map(([from, to, length]): Mutation => (zip) => {
    const copy = Buffer.from(zip);
    zip.copy(copy, at(zip, to), at(zip, from), Math.min(zip.length, at(zip, from) + length));
    return copy;
  });

const mutation = fc.oneof(
  { weight: 4, arbitrary: flip },
  overwrite,
  extreme,
  cutOut,
  cutOff,
  splice,
  insert,
  swap,
);
const mutated = fc
  .tuple(fc.constantFrom(...SHAPES), fc.array(mutation, { minLength: 1, maxLength: 3 }))
  .map(([zip, mutations]) =>
    mutations.reduce((bytes, mutate) => (bytes.length < 4 ? bytes : mutate(bytes)), zip),
  );

/** The content, or undefined for a refusal; any other error is thrown on. */
async function tryUnzip(bytes: Buffer, memoryBytes: number): Promise<Buffer | undefined> {
  try {
    const options = { spoolPath, memoryBytes, maxBytes: 1 << 24 };
    const body = await unzip({ kind: 'memory', bytes }, NAME, options);
    return body.kind === 'memory' ? body.bytes : readFileSync(body.path);
  } catch (error) {
    if (error instanceof CryptodlError && error.code.startsWith('zip-')) return undefined;
    throw error;
  }
}

describe('a damaged zip', () => {
  it.each([
    ['in memory', 1 << 20, sized(20_000, 2000)],
    ['through the spool file', 0, sized(3000, 300)],
  ])('gives its own content or is refused, %s', async (_way, memoryBytes, numRuns) => {
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(mutated, async (zip) => {
        rmSync(spoolPath, { force: true });
        const content = await tryUnzip(zip, memoryBytes);
        if (content === undefined) refused += 1;
        expect(content?.equals(DATA) ?? !existsSync(spoolPath)).toBe(true);
      }),
      { numRuns },
    );
    expect(refused).toBeGreaterThan(numRuns / 2);
  });

  it('is refused for every flipped bit of its data, and never gives other content', async () => {
    const zip = makeZip([ONE]);
    const dataStart = 30 + NAME.length;
    // The last byte of a deflate stream is filled up with bits that mean nothing.
    const lastByte = zip.indexOf('PK\x01\x02', dataStart) - 1;
    const accepted: number[] = [];
    for (let bit = 0; bit < zip.length * 8; bit += 1) {
      const copy = Buffer.from(zip);
      copy.writeUInt8(copy.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      const content = await tryUnzip(copy, 1 << 20);
      expect(content?.equals(DATA) ?? true).toBe(true);
      if (content !== undefined) accepted.push(bit >> 3);
    }
    // What is left are fields that say nothing about the content: versions, times, attributes.
    expect(accepted.filter((index) => index >= dataStart && index < lastByte)).toEqual([]);
    expect(new Set(accepted).size).toBeLessThan(40);
  });
});

describe('a good zip', () => {
  it('gives any content back, with any other members', async () => {
    const content = fc.oneof(
      fc.uint8Array({ maxLength: 3000 }),
      fc
        .tuple(fc.string({ minLength: 1 }), fc.integer({ min: 1, max: 5000 }))
        .map(([text, times]) => Buffer.from(text.repeat(times))),
    );
    const member = fc.record(
      {
        data: content.map((bytes) => Buffer.from(bytes)),
        method: fc.constantFrom(0, 8),
        level: fc.integer({ min: 0, max: 9 }),
        dataDescriptor: fc.constantFrom<boolean | 'no-signature'>(false, true, 'no-signature'),
        zip64: fc.boolean(),
        comment: fc.string({ maxLength: 20 }),
      },
      { requiredKeys: ['data'] },
    );
    const others = fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 20 }), member), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(member, others, fc.nat(3), fc.boolean(), async (wanted, beside, index, zip64) => {
        const members = beside.map(([name, other]) => ({ ...other, name: `x/${name}` }));
        members.splice(index, 0, { ...wanted, name: NAME });
        const bytes = makeZip(members, { zip64 });
        expect((await tryUnzip(bytes, 1 << 24))?.equals(wanted.data)).toBe(true);
        expect((await tryUnzip(bytes, 1000))?.equals(wanted.data)).toBe(true);
      }),
      { numRuns: sized(500, 150) },
    );
  });
});
