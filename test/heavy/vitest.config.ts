import { tier } from '../tier.js';

/** Minutes, gigabytes of disk: not a part of every run. */
export default tier('heavy', { testTimeout: 1_800_000, hookTimeout: 1_800_000, maxWorkers: 1 });
