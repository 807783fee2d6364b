import { tier } from '../tier.js';

/** Suites of half a minute and more. */
export default tier('long');
