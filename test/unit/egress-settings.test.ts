import { describe, expect, it } from 'vitest';
import { toCryptodlError } from '../../src/model/errors.js';
import { refuseLoneEgress } from '../../src/options/idle-settings.js';
import { resolveOptions } from '../../src/options/resolve.js';
import type { RawLayer } from '../../src/options/resolve.js';

const REDIS = { redis: ['redis://:secret@queue:6379'] };
const GROUP = { 'egress-group': ['office'] };

function refusalOf(origin: RawLayer['origin'], values: RawLayer['values'], ...more: RawLayer[]): unknown {
  try {
    const nameOf = (name: string): string => `${origin} ${name}`;
    refuseLoneEgress(resolveOptions('vision', [{ origin, values, nameOf }, ...more]));
    return undefined;
  } catch (error) {
    const { message, hint = '', correction } = toCryptodlError(error);
    expect(`${message} ${hint}`).not.toContain('secret');
    return [message, correction?.flags];
  }
}

describe('--redis and --egress-group', () => {
  it.each(['flag', 'job'] as const)('are refused alone from one command: %s', (origin) => {
    expect(refusalOf(origin, REDIS)).toEqual([
      expect.stringContaining(`${origin} redis changes nothing without --egress-group`),
      { redis: null },
    ]);
    expect(refusalOf(origin, GROUP)).toEqual([
      expect.stringContaining(`${origin} egress-group needs --redis`),
      undefined,
    ]);
    expect(refusalOf(origin, { ...REDIS, ...GROUP })).toBeUndefined();
  });

  it('complete each other from several sources', () => {
    const shared: RawLayer = { origin: 'environment', values: REDIS, nameOf: (name) => name };
    expect(refusalOf('flag', GROUP, shared)).toBeUndefined();
    expect(refusalOf('flag', REDIS, { ...shared, values: GROUP })).toBeUndefined();
  });

  it.each(['environment', 'config file', 'defaults of the jobs'] as const)(
    '--redis may stand alone in a source for several commands: %s',
    (origin) => {
      expect(refusalOf(origin, REDIS)).toBeUndefined();
    },
  );
});
