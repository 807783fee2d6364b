/** Sends one request to each host, as a run sends it but without retries. The error of a request has the cause and the next step. */
import type { Fetch } from '../../model/fetch.js';
import { CryptodlError, toCryptodlError, type ErrorCode } from '../../model/errors.js';
import type { SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { urlPathOf } from '../../exchange/keys.js';
import type { Exchange } from '../../exchange/exchange.js';
import { checkResult, differenceOf, type CheckResult, type ClockDifference } from './check-machine.js';

export interface HostChecks extends VerbRequest<SessionFlag> {
  readonly fetch: Fetch;
  /** Gets the difference of each host that answers. */
  readonly clocks: ClockDifference[];
}

interface HostProbe {
  readonly check: string;
  /** The host by default. */
  readonly of?: string | undefined;
  readonly address: string;
  /** The flag that sets the address. */
  readonly flag: string;
  readonly path: string;
  readonly bucket: string;
  /** Throws a CryptodlError for an answer that does not come from the exchange. */
  readonly read: (body: Buffer) => void;
}

/** The archive, the listing and each REST host that the exchange has, in this order. */
export function checkHosts(context: HostChecks): Promise<CheckResult>[] {
  const { exchange, resolved } = context;
  const { options } = resolved;
  const keys: string[] = [];
  const listing = probe(context, listingProbe(exchange, options.listingUrl, keys));
  const archive = listing.then(() => probe(context, archiveProbe(context, keys)));
  const rest = REST.filter(({ role }) => exchange.hosts[role] !== undefined).map(
    ({ role, option, ...request }) =>
      probe(context, {
        check: 'rest',
        address: options[option],
        flag: `--${role}-url`,
        ...request,
        read: refuseOtherPages,
      }),
  );
  return [archive, listing, ...rest];
}

/** One of several proxies, through which `fetch` sends a request for the listing. */
export function checkProxy(context: HostChecks, label: string): Promise<CheckResult> {
  return probe(context, {
    ...listingProbe(context.exchange, context.resolved.options.listingUrl, []),
    check: 'proxy',
    of: label,
    flag: '--proxy',
  });
}

/** Requests of weight 1. */
const REST = [
  { role: 'fapi', option: 'fapiUrl', path: '/fapi/v1/time', bucket: 'futures' },
  { role: 'dapi', option: 'dapiUrl', path: '/dapi/v1/time', bucket: 'futures' },
  { role: 'spot', option: 'spotUrl', path: '/api/v3/time', bucket: 'spot' },
] as const;

/** Adds the listed keys to `keys`. */
function listingProbe({ archive }: Exchange, address: string, keys: string[]): HostProbe {
  return {
    check: 'listing',
    address,
    flag: '--listing-url',
    path: archive.known.listing,
    bucket: 'listing',
    read: (page) => {
      keys.push(...archive.listing.parse(page, archive.known.listing).objects.map(({ key }) => key));
      if (keys.length === 0)
        throw new CryptodlError('listing-malformed', 'the listing has no objects below data/', {
          hint: 'check --listing-url: it must be the address above data/',
        });
    },
  };
}

/** A sidecar that the listing names, or one that each archive should have. */
function archiveProbe({ exchange, resolved }: HostChecks, keys: readonly string[]): HostProbe {
  const { sidecar, known } = exchange.archive;
  const suffix = sidecar?.suffix ?? '';
  return {
    check: 'archive',
    address: resolved.options.archiveUrl,
    flag: '--archive-url',
    path: `/${urlPathOf(keys.find((key) => key.endsWith(suffix)) ?? known.key + suffix)}`,
    bucket: 'archive',
    read: () => undefined,
  };
}

/** Refuses the page of a network with a login. */
function refuseOtherPages(body: Buffer): void {
  if (body.includes('"serverTime"')) return;
  throw new CryptodlError('answer-malformed', 'the answer has no server time', {
    hint: 'check the address of the host; a network with a login page answers like this too',
  });
}

/** Far more than a listing page with a few keys needs. */
const MAX_BYTES = 1024 * 1024;
/** The limit of a wait for a permit, or for the end of a ban. */
export const LONGEST_PERMIT_WAIT_MS = 3000;

async function probe(context: HostChecks, request: HostProbe): Promise<CheckResult> {
  const { check, address, path, flag, bucket, read } = request;
  const { clock, fetch, signal, clocks } = context;
  const { host } = new URL(address);
  const of = request.of ?? host;
  let sentAtMs = clock.now();
  let firstByteMs = 0;
  const wait = new AbortController();
  const timer = clock.timer(LONGEST_PERMIT_WAIT_MS, () => {
    const text = 'no request sent: other runs on this machine use up the request limit of the host';
    wait.abort(new CryptodlError('wait-too-long', text, { hint: 'run cryptodl doctor again in a minute' }));
  });
  try {
    const response = await fetch(
      { url: address + path, bucket, maxBytes: MAX_BYTES },
      {
        signal,
        waitSignal: AbortSignal.any([signal, wait.signal]),
        traceId: check,
        attemptId: check,
        onActivity: (sign) => {
          if (sign === 'sent') sentAtMs = clock.now();
          if (sign === 'headers') firstByteMs = clock.now() - sentAtMs;
        },
      },
    );
    const receivedAtMs = clock.now();
    const dateMs = Date.parse(response.headers['date'] ?? '');
    if (!Number.isNaN(dateMs))
      clocks.push({ host, differenceMs: differenceOf(dateMs, sentAtMs, receivedAtMs) });
    if (response.status === 404)
      throw new CryptodlError('http-refused', `the host has no ${path} (404)`, {
        hint: `check ${flag}: it must be the address above data/`,
      });
    read(response.body.kind === 'memory' ? response.body.bytes : Buffer.alloc(0));
    const found = `first byte ${firstByteMs} ms, whole ${receivedAtMs - sentAtMs} ms`;
    return checkResult(check, 'ok', found, { of });
  } catch (error) {
    signal.throwIfAborted();
    const result = errorResult(toCryptodlError(error), request, host);
    // Without a request, the host may work.
    return error === wait.signal.reason ? { ...result, status: 'warn' } : result;
  } finally {
    timer.cancel();
  }
}

/** REST refuses some countries and networks for good; the archive has the same data a day or a month later. */
const REFUSED_HERE: ReadonlySet<ErrorCode> = new Set(['location-restricted', 'address-blocked']);

function errorResult(error: CryptodlError, request: HostProbe, host: string): CheckResult {
  const { code, message, hint, fromHost } = error;
  const { check, of = host, flag } = request;
  // The printed line begins with the host.
  const cause = fromHost?.host === host ? fromHost.fault : message;
  const isElsewhere = check === 'rest' && REFUSED_HERE.has(code);
  const next = isElsewhere
    ? 'use cryptodl vision: the archive publishes funding rates and metrics a day or a month later'
    : (hint ?? `check the network, firewalls, --proxy and ${flag}`);
  return checkResult(check, isElsewhere ? 'warn' : 'fail', `${cause} (${code})`, { of, next });
}
