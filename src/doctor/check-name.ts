/** Checks whether DNS resolves the name of a host. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { durationText } from '../model/units.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

export interface NameInput {
  readonly hostname: string;
  /** The flag that sets the host. */
  readonly flag: string;
  /** A proxy resolves the name itself. */
  readonly proxy: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** False for IP addresses and localhost, which need no DNS. */
export function hasName(hostname: string): boolean {
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 && hostname !== 'localhost';
}

const SLOW_MS = 2000;

/** Fails when the name has no address; warns when DNS takes longer than 2 s. */
export async function checkName(input: NameInput): Promise<CheckResult> {
  const { hostname, flag, proxy, timeoutMs, clock, signal } = input;
  if (proxy !== undefined) return checkResult('dns', 'ok', 'resolved by the proxy', { of: hostname });
  const begun = clock.monotonic();
  const stop = new AbortController();
  try {
    const late = clock.sleep(timeoutMs, AbortSignal.any([signal, stop.signal])).then(() => undefined);
    // The sleep is aborted, and so rejects, when the lookup ends first.
    late.catch(() => undefined);
    const addresses = await Promise.race([lookup(hostname, { all: true }), late]);
    const ms = Math.round(clock.monotonic() - begun);
    const of = hostname;
    if (addresses === undefined)
      return checkResult('dns', 'fail', `no answer within ${durationText(timeoutMs)}`, {
        of,
        next: RESOLVER,
      });
    const figures = { ms, addresses: addresses.length };
    const many = addresses.length === 1 ? '1 address' : `${addresses.length} addresses`;
    if (ms <= SLOW_MS) return checkResult('dns', 'ok', `${many} in ${ms} ms`, { of, figures });
    return checkResult('dns', 'warn', `${many}, but only after ${ms} ms`, { of, figures, next: RESOLVER });
  } catch (error) {
    signal.throwIfAborted();
    return refused(hostname, flag, errnoOf(error));
  } finally {
    stop.abort();
  }
}

const RESOLVER = 'check the network and its name server (on Linux /etc/resolv.conf)';

function refused(hostname: string, flag: string, code: string): CheckResult {
  if (code !== 'ENOTFOUND')
    return checkResult('dns', 'fail', `the name server does not answer (${code})`, {
      of: hostname,
      next: RESOLVER,
    });
  return checkResult('dns', 'fail', 'the name does not exist (ENOTFOUND)', {
    of: hostname,
    next: `check the network and ${flag}`,
  });
}
