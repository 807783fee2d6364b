/** How much is tortured, and how that is chosen. */
const SIZES = {
  short: { everyCall: false, kills: 20, killsOfDaily: 6, killsOfLarge: 8, symbols: 60, queueKills: 2 },
  full: { everyCall: true, kills: 200, killsOfDaily: 200, killsOfLarge: 20, symbols: 200, queueKills: 50 },
};

export const SIZE = process.env['CRYPTODL_TORTURE'] === 'full' ? SIZES.full : SIZES.short;
