import { tier } from '../tier.js';

/** The unit tests without the simulation: a surviving mutant waits for all of its tests, and the simulation takes a minute. */
export default tier('unit', {
  exclude: ['test/unit/run/simulation.test.ts'],
  env: { CRYPTODL_TEST_MUTANTS: 'yes' },
});
