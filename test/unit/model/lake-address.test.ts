import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { isPlainKey, parseLake, parseLakeAddress } from '../../../src/model/lake-address.js';

describe('the address of a lake in a bucket', () => {
  it.each([
    ['s3://lake', 'lake', '', 's3://lake'],
    ['s3://lake/', 'lake', '', 's3://lake'],
    [
      'S3://my.bucket-1/a folder=1/data//',
      'my.bucket-1',
      'a folder=1/data/',
      's3://my.bucket-1/a folder=1/data',
    ],
  ])('%s', (value, bucket, prefix, text) => {
    expect(parseLakeAddress(value, '--out')).toEqual({ bucket, prefix, text });
  });

  it.each([
    's3:lake',
    's3://',
    's3:///data',
    's3://a..b/data',
    's3://lake?x=1',
    's3://lake/../other',
    's3://lake/a//b',
    's3://lake/a\nb',
    `s3://lake/${'x'.repeat(600)}`,
  ])('%j is refused with an example', (value) => {
    expect(refused(value)).toMatchObject({
      code: 'usage',
      message: `--out: "${value}" is not the address of a bucket, or of a folder in one`,
      hint: 'for example: s3://my-bucket/lake',
    });
  });

  it('with keys is refused, and they are not shown', () => {
    const error = refused('s3://AKID:hunter2@lake/data');
    expect(error).toMatchObject({
      code: 'usage',
      hint: expect.stringContaining('AWS_ACCESS_KEY_ID') as string,
    });
    expect(error.message + (error.hint ?? '')).not.toMatch(/AKID:|hunter2/);
  });
});

describe('a lake', () => {
  it.each(['data', '/mnt/a b', '../data', 'C:\\data', 'a:b/c'])('in the folder %s', (folder) => {
    expect(parseLake(folder, '--out')).toBe(folder);
  });

  it('in a bucket gets one form of its address', () => {
    expect(parseLake('S3://lake/data//', '--out')).toBe('s3://lake/data');
  });

  it.each(['gs://lake/data', 's3a://lake', 'https://AKID:hunter2@lake.s3.amazonaws.com', 'file:///data'])(
    'at %s is refused',
    (address) => {
      const error = refused(address);
      expect(error).toMatchObject({
        code: 'usage',
        message: `--out: a lake cannot be at a ${address.slice(0, address.indexOf('//') + 2)} address`,
        hint: 'write the path of a folder, or s3://BUCKET/PREFIX with --s3-endpoint for a server that is not AWS',
      });
    },
  );
});

function refused(value: string): CryptodlError {
  try {
    parseLake(value, '--out');
  } catch (error) {
    if (error instanceof CryptodlError) return error;
  }
  throw new Error(`${value} was not refused`);
}

it.each([
  ['a/b=c/d e.parquet', true],
  ['', false],
  ['/a', false],
  ['a/', false],
  ['a//b', false],
  ['a/./b', false],
  ['a/../b', false],
  ['..', false],
  ['a/..b', true],
  [String.raw`a\b`, false],
  ['a\u0000', false],
  ['a\u2028b', false],
  ['a\ud800', false],
])('%j can be a path of a file: %s', (key, expected) => {
  expect(isPlainKey(key)).toBe(expected);
});
