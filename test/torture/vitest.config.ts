import { defineConfig } from 'vitest/config';

/** Minutes: not a part of every run. */
export default defineConfig({
  test: {
    include: ['test/torture/**/*.test.ts'],
    testTimeout: 3_600_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
