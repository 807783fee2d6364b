import { tier } from '../tier.js';

/**
 * The unit tests without the simulation and without those of the built program: a surviving mutant waits for all of its tests, the
 * simulation takes a minute, and the built program has no mutants.
 */
export default tier('unit', {
  exclude: ['test/unit/simulation.test.ts', 'test/unit/listed-values.test.ts'],
  env: { CRYPTODL_TEST_MUTANTS: 'yes' },
});
