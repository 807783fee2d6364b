import { tier } from './test/tier.js';

/** A worker loads the program once for all of its files: each loading takes half a second. */
export default tier('{unit,e2e}', {
  isolate: false,
  globalSetup: 'test/scratch-in-memory.ts',
  // On two cores: many tests wait for processes and servers.
  maxWorkers: 3,
});
