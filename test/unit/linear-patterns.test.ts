/** Each regular expression needs time in proportion to the length of its text, because texts come from outside. */
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { attacksOn, patternsIn } from '../helpers/patterns.js';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const BYTES = 100_000;

/** A linear expression needs some milliseconds for the text; a quadratic one eight seconds and more. */
const KILLED_AFTER_MS = 5000;

const context = createContext({});

/** The error of a call that was stopped or that failed; undefined for a call that ended by itself. */
function errorOf(call: () => unknown): string | undefined {
  context['call'] = call;
  try {
    runInContext('call()', context, { timeout: KILLED_AFTER_MS });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('a regular expression in src', () => {
  const patterns = patternsIn(SRC);

  it('is found', () => {
    expect(patterns.length).toBeGreaterThan(200);
  });

  it.each(patterns)('at $place reads 100 kB', { timeout: 60_000 }, ({ pattern }) => {
    for (const text of attacksOn(pattern, BYTES)) {
      const error = errorOf(() => (pattern.global ? text.replaceAll(pattern, '') : pattern.exec(text)));
      expect({ start: text.slice(0, 80), error }).toMatchObject({ error: undefined });
    }
  });
});
