/** Errors of requests as findings: what they are called, and what helps. */
import type { CryptodlError, ErrorCode } from '../errors.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';

const ARCHIVE_INSTEAD =
  'cryptodl vision and cryptodl list work from here when their lines say ok: the archive has funding rates and metrics as well, a day or a month later';

type Next = (flag: string, isRest: boolean) => string;

const NETWORK: Next = (flag) => `check the network, a firewall between, --proxy and ${flag}`;
const LATER: Next = () => 'leave it alone for that long: every request in between makes it longer';

const NEXT: Readonly<Partial<Record<ErrorCode, Next>>> = {
  'location-restricted': (_, isRest) => (isRest ? ARCHIVE_INSTEAD : 'try from a network in another place'),
  'address-blocked': (_, isRest) =>
    `a firewall in front of it refuses this address: wait, or try from another network (shared VPN and cloud addresses are often refused)${isRest ? `; ${ARCHIVE_INSTEAD}` : ''}`,
  'http-forbidden': (flag) => `check ${flag}: whoever answers there does not let us read`,
  'http-server-error': () => 'it is not your fault: try again later',
  'connect-failed': NETWORK,
  'connect-timeout': NETWORK,
  'host-unknown': (flag) => `check the network and ${flag}`,
  'dns-failed': (flag) => `check the network and ${flag}`,
  'headers-timeout': (flag) => `try again later, or with a longer --headers-timeout; check ${flag}`,
  'total-timeout': () => 'try again later, or with a longer --total-timeout',
  'idle-timeout': () => 'try again later, or with a longer --idle-timeout',
  'rate-limited': LATER,
  banned: LATER,
  'wait-too-long': () => 'look again in a minute',
  'listing-malformed': (flag) => `check ${flag}; a network that wants a login first also answers like that`,
};

export function refusedFinding(
  check: string,
  { address, flag }: { readonly address: string; readonly flag: string },
  error: CryptodlError,
): Finding {
  const { host } = new URL(address);
  // The line names the host already.
  const said = error.message.startsWith(host)
    ? error.message.slice(host.length).replace(/^:? /, '')
    : error.message;
  const next = NEXT[error.code]?.(flag, check === 'rest') ?? error.hint ?? `check ${flag}`;
  // Nothing was asked, so nothing is known.
  const status = error.code === 'wait-too-long' ? 'warn' : 'fail';
  return finding(check, status, `${said} (${error.code})`, { of: host, next, figures: { code: error.code } });
}
