import { expect, it } from 'vitest';
import { MULTIPART, partBytesOf } from '../../src/s3/multipart.js';

const MIB = 1024 * 1024;

it.each([64 * MIB + 1, 100_000 * MIB, 160_000 * MIB, 160_000 * MIB + 1, 5_000_000 * MIB])(
  'a file of %d bytes has at most 10,000 parts of whole MiB',
  (size) => {
    const partBytes = partBytesOf(size, MULTIPART.partBytes);
    expect(Math.ceil(size / partBytes)).toBeLessThanOrEqual(10_000);
    expect(partBytes % MIB).toBe(0);
    expect(partBytes).toBeGreaterThanOrEqual(16 * MIB);
  },
);
