import { tier } from '../tier.js';

/** The fault matrix through the binary. */
export default tier('faults');
