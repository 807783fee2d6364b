import { tier } from '../tier.js';

/** The tests that start no process of their own. A surviving mutant waits for all of its tests, and a simulation takes a minute. */
export default tier('unit', { exclude: ['test/unit/simulation.test.ts'] });
