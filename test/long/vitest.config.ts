import { tier } from '../tier.js';

/** Suites of half a minute and more, rare cases that take seconds, and all seeds and runs of those that `npm test` takes a part of. */
export default tier('long', {
  include: [
    'test/long/**/*.test.ts',
    'test/e2e/{proof,proof-of-cron,bars-rebuild}.test.ts',
    'test/unit/**/{simulation,concurrency,resume,lock,priority.property,check-rows.property,direct-copy.property,unzip.property,undone-commits.property}.test.ts',
  ],
  // On two cores: most of these suites wait for real seconds.
  maxWorkers: 3,
  env: { CRYPTODL_TEST_SIZE: process.env['CRYPTODL_TEST_SIZE'] ?? 'long' },
});
