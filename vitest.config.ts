import { defineConfig } from 'vitest/config';

const REPORT = process.env['CRYPTODL_TEST_REPORT'];

export default defineConfig({
  test: {
    // CI counts the tests of the last run from this file.
    reporters: REPORT === undefined ? ['default'] : ['default', ['json', { outputFile: REPORT }]],
    include: ['test/{unit,e2e,faults}/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: the e2e suites start processes of their own.
    maxWorkers: 2,
  },
});
