import { defineConfig } from 'vitest/config';

/** Minutes, gigabytes of disk: not a part of every run. */
export default defineConfig({
  test: {
    include: ['test/heavy/**/*.test.ts'],
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
    maxWorkers: 1,
  },
});
