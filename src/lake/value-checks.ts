/** Checks of the values in manifest lines. */
import { isLabel } from '../text/label.js';
import { DIGEST, INSTANT } from './plain-line.js';

export type Check = (value: unknown) => boolean;

export function listOf(isRight: Check): Check {
  return (value) => Array.isArray(value) && value.every((one) => isRight(one));
}

export function oneOf(...values: readonly string[]): Check {
  const known = new Set<unknown>(values);
  return (value) => known.has(value);
}

const WHOLE_DIGEST = new RegExp(`^${DIGEST}$`);
const WHOLE_INSTANT = new RegExp(`^${INSTANT}$`);

export function isText(value: unknown): value is string {
  return typeof value === 'string';
}

export function isLabelText(value: unknown): boolean {
  return isText(value) && isLabel(value);
}

export function isDigest(value: unknown): boolean {
  return typeof value === 'string' && WHOLE_DIGEST.test(value);
}

export function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isInstant(value: unknown): boolean {
  return typeof value === 'string' && WHOLE_INSTANT.test(value);
}

/** From 2000 to 2199, because readers iterate over all days of an absence. */
export function isSupportedPeriod(period: unknown): boolean {
  return typeof period === 'string' && period >= '2000' && period < '2200';
}
