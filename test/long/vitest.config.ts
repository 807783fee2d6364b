import { tier } from '../tier.js';

/** Suites of half a minute and more, and all seeds and runs of those that `npm test` takes a part of. */
export default tier('long', {
  include: [
    'test/long/**/*.test.ts',
    'test/unit/{simulation,concurrency,resume,lock,priority.property,check-rows.property,direct-copy.property,unzip.property,undone-commits.property}.test.ts',
    'test/e2e/universe-look-ahead.test.ts',
  ],
  env: { CRYPTODL_TEST_SIZE: 'long' },
});
