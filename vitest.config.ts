import { tier } from './test/tier.js';

export default tier('{unit,e2e}');
