/** Whether the name of a host has an address. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../model/clock.js';
import { errnoOf } from '../model/errors.js';
import { durationText } from '../model/units.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';

export interface NameQuestion {
  readonly hostname: string;
  /** The flag that says otherwise. */
  readonly flag: string;
  /** Asked for the address in our place. */
  readonly proxy: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** An address in digits, and this machine itself, ask no resolver. */
export function hasName(hostname: string): boolean {
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 && hostname !== 'localhost';
}

const SLOW_MS = 2000;

export async function checkName(question: NameQuestion): Promise<Finding> {
  const { hostname, flag, proxy, timeoutMs, clock, signal } = question;
  if (proxy !== undefined) return finding('dns', 'ok', 'left to the proxy', { of: hostname });
  const begun = clock.monotonic();
  const stop = new AbortController();
  try {
    const late = clock.sleep(timeoutMs, AbortSignal.any([signal, stop.signal])).then(() => undefined);
    // Stopped when the answer is there.
    late.catch(() => undefined);
    const addresses = await Promise.race([lookup(hostname, { all: true }), late]);
    const ms = Math.round(clock.monotonic() - begun);
    const of = hostname;
    if (addresses === undefined)
      return finding('dns', 'fail', `no answer within ${durationText(timeoutMs)}`, { of, next: RESOLVER });
    const figures = { ms, addresses: addresses.length };
    const many = addresses.length === 1 ? '1 address' : `${addresses.length} addresses`;
    if (ms <= SLOW_MS) return finding('dns', 'ok', `${many} in ${ms} ms`, { of, figures });
    return finding('dns', 'warn', `${many}, but only after ${ms} ms`, { of, figures, next: RESOLVER });
  } catch (error) {
    signal.throwIfAborted();
    return refused(hostname, flag, errnoOf(error));
  } finally {
    stop.abort();
  }
}

const RESOLVER = 'check the network and its name server (on Linux /etc/resolv.conf)';

function refused(hostname: string, flag: string, code: string): Finding {
  if (code !== 'ENOTFOUND')
    return finding('dns', 'fail', `the name server does not answer (${code})`, {
      of: hostname,
      next: RESOLVER,
    });
  return finding('dns', 'fail', 'no host has this name (ENOTFOUND)', {
    of: hostname,
    next: `check the network and ${flag}`,
  });
}
