import { defineConfig } from 'vitest/config';

const REPORT = process.env['CRYPTODL_TEST_REPORT'];

/** Minutes of crashes: not a part of every run. CRYPTODL_TORTURE=full takes every call of every set, and 200 kills. */
export default defineConfig({
  test: {
    // CI counts the tests of the last run from this file.
    reporters: REPORT === undefined ? ['default'] : ['default', ['json', { outputFile: REPORT }]],
    include: ['test/torture/**/*.test.ts'],
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
    // Two cores, and every test starts processes of its own.
    maxWorkers: 2,
    maxConcurrency: 2,
  },
});
