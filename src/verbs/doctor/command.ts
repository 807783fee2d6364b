/** The command object of `doctor`: flags, help and what it does. */
import { BUCKET_FLAGS, REST_FLAGS, ATTEMPT_FLAGS, SOCKET_FLAGS } from '../../plan/options/flag-sets.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineSessionVerb } from '../../run/verb/verb.js';

export const doctorVerb = defineSessionVerb({
  name: 'doctor',
  doc: 'check this machine, the network and the lake; prints one line each for versions, hosts, clock, disks, lock and bans',
  exits: { 0: 'no problem', 1: 'a check failed', 2: BASE_EXITS[2] },
  examples: [
    'cryptodl doctor',
    'cryptodl doctor -o /srv/lake -q',
    'cryptodl doctor --clear-bans fapi.binance.com',
    'cryptodl doctor --proxy http://127.0.0.1:3128 --json',
  ],
  aka: ['diagnose', 'diagnostics', 'health', 'healthcheck', 'selftest'],
  flags: [
    ...SOCKET_FLAGS,
    'out',
    'temp-dir',
    'state-dir',
    'concurrency',
    'proxy',
    'clear-bans',
    'json',
    'quiet',
    'config',
    'print-options',
  ],
  moreFlags: [...ATTEMPT_FLAGS, ...REST_FLAGS, ...BUCKET_FLAGS, 'retry-preset'],
  meanings: {
    'headers-timeout': { default: '5s' },
    'idle-timeout': { default: '5s' },
    'total-timeout': { default: '10s' },
  },
  isReader: true,
  act: async (command) => (await import('./doctor.js')).doctor(command),
});
