import { describe, expect, it } from 'vitest';
import { toCryptodlError } from '../../src/model/errors.js';
import type { FlagName } from '../../src/options/flags.js';
import { resolveOptions } from '../../src/options/resolve.js';
import type { RawLayer } from '../../src/options/resolve.js';

type Values = Readonly<Partial<Record<FlagName, string>>>;

function layer(origin: RawLayer['origin'], values: Values): RawLayer {
  const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [value]]));
  return {
    origin,
    values: texts,
    nameOf: (name) => (origin === 'flag' ? `--${name}` : `${origin}: ${name}`),
  };
}

/** The refusal, and the flags of its correction. */
function refusalOf(...layers: RawLayer[]): unknown {
  try {
    resolveOptions('vision', layers);
    return undefined;
  } catch (error) {
    const { message, correction } = toCryptodlError(error);
    return [message.replace(/:[^:]*$/, ''), correction?.flags];
  }
}

describe('a setting that the format does not have', () => {
  it.each<[Values, Values, string]>([
    [{ format: 'zip', partition: 'day' }, { partition: 'null' }, '--partition day'],
    [{ format: 'zip', timestamps: 'iso' }, { timestamps: 'null' }, '--timestamps iso'],
    [{ format: 'zip', numbers: 'double' }, { numbers: 'null' }, '--numbers double'],
    [{ format: 'csv', numbers: 'double' }, { numbers: 'null' }, '--numbers double'],
    [{ format: 'parquet', timestamps: 'ms' }, { timestamps: 'null' }, '--timestamps ms'],
    [{ timestamps: 'iso' }, { format: 'csv' }, '--timestamps iso'],
  ])('is refused as a flag: %j', (flags, corrected, name) => {
    const format = flags.format ?? 'parquet';
    expect(refusalOf(layer('flag', flags))).toEqual([
      `${name} changes nothing with --format ${format}`,
      Object.fromEntries(
        Object.entries(corrected).map(([key, value]) => [key, value === 'null' ? null : value]),
      ),
    ]);
  });

  it.each<Values>([
    { format: 'zip', partition: 'auto' },
    { format: 'zip', numbers: 'string', 'as-published': 'true' },
    { format: 'csv', numbers: 'string', timestamps: 'iso', partition: 'day' },
    { format: 'parquet', timestamps: 'utc', numbers: 'double' },
    { format: 'parquet', timestamps: 'us' },
  ])('is accepted if the files are as it says: %j', (flags) => {
    expect(refusalOf(layer('flag', flags))).toBeUndefined();
  });

  it('is left unused from a source that is shared with other formats, but not from the source of the format', () => {
    const shared = { timestamps: 'iso', numbers: 'double' };
    expect(refusalOf(layer('config file', shared))).toBeUndefined();
    expect(refusalOf(layer('flag', { format: 'zip' }), layer('environment', shared))).toBeUndefined();
    expect(refusalOf(layer('environment', { ...shared, format: 'csv' }))).toEqual([
      'environment: numbers double changes nothing with --format csv',
      { numbers: null },
    ]);
    expect(refusalOf(layer('job', { partition: 'day' }), layer('config file', { format: 'zip' }))).toEqual([
      'job: partition day changes nothing with --format zip',
      { partition: null },
    ]);
  });
});
