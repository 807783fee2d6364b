import { tier } from '../tier.js';

/** Minutes of crashes: not a part of every run. CRYPTODL_TORTURE=full takes every call of every set, and 200 kills. */
export default tier('torture', { testTimeout: 3_600_000, hookTimeout: 600_000, maxConcurrency: 2 });
