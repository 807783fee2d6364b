import { VERBS } from '../../../src/main.js';
import { expect, it } from 'vitest';
import { toCryptodlError } from '../../../src/model/errors.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import type { RawLayer } from '../../../src/plan/options/resolve.js';

const REDIS = { redis: ['redis://:secret@queue:6379'] };
const GROUP = { 'egress-group': ['office'] };

function refusalOf(origin: RawLayer['origin'], values: RawLayer['values'], ...more: RawLayer[]): unknown {
  try {
    const nameOf = (name: string): string => `${origin} ${name}`;
    resolveOptions(VERBS.vision, [{ origin, values, nameOf }, ...more]);
    return undefined;
  } catch (error) {
    return toCryptodlError(error).message;
  }
}

it.each(['flag', 'job'] as const)('--egress-group of one command needs --redis: %s', (origin) => {
  const shared: RawLayer = { origin: 'environment', values: REDIS, nameOf: (name) => name };
  expect(refusalOf(origin, GROUP)).toBe(
    `--egress-group needs --redis, where its programs share their limits`,
  );
  expect(refusalOf(origin, { ...REDIS, ...GROUP })).toBeUndefined();
  expect(refusalOf(origin, GROUP, shared)).toBeUndefined();
});

it('--egress-group of several commands is left unused without --redis', () => {
  expect(refusalOf('environment', GROUP)).toBeUndefined();
  expect(refusalOf('config file', GROUP)).toBeUndefined();
});
