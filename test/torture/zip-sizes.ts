/** Where a zip says how long something is, and how much memory is asked for meanwhile. */
import { deflateRawSync } from 'node:zlib';
import { vi } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { CSV_NAME } from './bodies.js';

interface SizeField {
  readonly at: number;
  readonly width: 2 | 4 | 8;
}

/** Widths by offset behind the signature's start (APPNOTE.TXT 4.3); names and extra fields follow the fixed part. */
const RECORDS: readonly (readonly [string, Readonly<Record<number, 2 | 4 | 8>>, number?])[] = [
  ['PK\u0003\u0004', { 18: 4, 22: 4, 26: 2, 28: 2 }, 30],
  ['PK\u0001\u0002', { 20: 4, 24: 4, 28: 2, 30: 2, 32: 2, 42: 4 }, 46],
  ['PK\u0005\u0006', { 8: 2, 10: 2, 12: 4, 16: 4, 20: 2 }],
  ['PK\u0006\u0006', { 4: 8, 24: 8, 32: 8, 40: 8, 48: 8 }],
  ['PK\u0006\u0007', { 8: 8 }],
];

/** Every size, length, count and offset; of a ZIP64 extra field each of its numbers. */
function sizeFields(zip: Buffer): SizeField[] {
  return RECORDS.flatMap(([signature, widths, fixed]) =>
    placesOf(zip, signature).flatMap((start) => {
      const plain = Object.entries(widths).map(([offset, width]) => ({ at: start + Number(offset), width }));
      if (fixed === undefined) return plain;
      const lengths = start + (fixed === 30 ? 26 : 28);
      const extra = start + fixed + zip.readUInt16LE(lengths);
      const numbers = Math.floor(Math.max(0, zip.readUInt16LE(lengths + 2) - 4) / 8);
      const wide = Array.from({ length: numbers }, (_, at) => ({
        at: extra + 4 + 8 * at,
        width: 8 as const,
      }));
      return [...plain, ...wide];
    }),
  );
}

function placesOf(zip: Buffer, signature: string): number[] {
  const places: number[] = [];
  for (let at = zip.indexOf(signature, 0, 'latin1'); at >= 0; at = zip.indexOf(signature, at + 1, 'latin1'))
    places.push(at);
  return places;
}

const VALUES = [0n, 1n, 0xffffn, 0x10000n, 0x7fffffffn, 0xfffffffen, 0xffffffffn, 1n << 40n, 1n << 53n, ~0n];

export interface LyingZip {
  readonly how: string;
  readonly zip: Buffer;
}

/** One field of one header says something else than the others. */
export function lonelyLies(sound: Buffer): LyingZip[] {
  return sizeFields(sound).flatMap(({ at, width }) =>
    VALUES.map((value) => {
      const zip = Buffer.from(sound);
      const fitting = BigInt.asUintN(8 * width, value);
      if (width === 8) zip.writeBigUInt64LE(fitting, at);
      else zip.writeUIntLE(Number(fitting), at, width);
      return { how: `${fitting} at ${at}`, zip };
    }),
  );
}

/** Both headers tell the same lie about sizes; and deflate streams of very much out of very little. */
export function commonLies(content: Buffer): LyingZip[] {
  const bomb = deflateRawSync(Buffer.alloc(1 << 26));
  const lies: LyingZip[] = [];
  for (const zip64 of [false, true]) {
    const sizes = VALUES.map(Number).filter((size) => size >= 0 && size < (zip64 ? 2 ** 53 : 2 ** 32 - 1));
    for (const size of [...sizes, 1000, 1 << 15, 1 << 20, 1 << 26]) {
      for (const member of [{ method: 8 }, { method: 0 }, { compressed: bomb }]) {
        for (const both of [{ size }, { compressedSize: size }, { size, compressedSize: size }]) {
          const how = JSON.stringify({ zip64, ...both, isBomb: 'compressed' in member });
          const one = { name: CSV_NAME, data: content, zip64, ...member, both };
          lies.push({ how, zip: makeZip([one], { zip64 }) });
        }
      }
    }
  }
  return lies;
}

export interface Allocations {
  /** Bytes of the largest buffer that was asked for since the last reset, zlib's own included. */
  largest(): number;
  reset(): void;
  stop(): void;
}

/** Asks Node itself: memory that is asked for and not touched shows in no statistics of the process. */
export function watchAllocations(): Allocations {
  const spies = (['alloc', 'allocUnsafe', 'allocUnsafeSlow'] as const).map((name) => vi.spyOn(Buffer, name));
  return {
    largest: () => spies.flatMap((spy) => spy.mock.calls).reduce((most, [size]) => Math.max(most, size), 0),
    reset: () => {
      for (const spy of spies) spy.mockClear();
    },
    stop: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}
