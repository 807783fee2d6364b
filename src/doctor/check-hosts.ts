/** Checks the configured hosts of runs: proxy, name, certificate, archive, listing and REST. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Bans } from '../http/bans.js';
import type { EgressGroup } from '../http/throttle/group.js';
import type { LakePaths } from '../lake/layout.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, errnoOf } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { durationText } from '../model/units.js';
import type { Proxies, Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { keyPath } from '../source/keys.js';
import type { Source } from '../source/source.js';
import { checkCertificate } from './check-certificate.js';
import { checkArchive, checkListing, checkRest } from './check-endpoints.js';
import type { EndpointResult, TimedFetch } from './check-endpoints.js';
import { proxyOf } from '../http/proxies/no-proxy.js';
import { checkProxy } from './check-proxy.js';
import type { CheckResult } from './check-result.js';
import { checkResult } from './check-result.js';

export interface DoctorRequest {
  readonly source: Source;
  readonly options: Options;
  readonly origins: Resolved['origins'];
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Memory, open files and threads that the process may use. */
  readonly limits: Io['limits'];
  readonly warn: (message: string) => void;
}

export interface CheckContext extends DoctorRequest {
  readonly paths: LakePaths;
  readonly proxies: Proxies;
  readonly authorities: string | undefined;
  readonly bans: Bans;
  readonly group: EgressGroup | undefined;
  readonly hosts: readonly Host[];
  readonly fetchTimed: TimedFetch;
}

/** A host that runs use, and the flag that sets its address. */
export interface Host {
  readonly role: 'archive' | 'listing' | 'fapi' | 'dapi' | 'spot';
  readonly address: string;
  readonly flag: string;
}

/** The configured hosts of a run, without fallback hosts. */
export function hostsOf({ options, source }: DoctorRequest): Host[] {
  const hosts: Host[] = [
    { role: 'archive', address: options.archiveUrl, flag: '--archive-url' },
    { role: 'listing', address: options.listingUrl, flag: '--listing-url' },
    { role: 'fapi', address: options.fapiUrl, flag: '--fapi-url' },
    { role: 'dapi', address: options.dapiUrl, flag: '--dapi-url' },
    { role: 'spot', address: options.spotUrl, flag: '--spot-url' },
  ];
  // Not every exchange has all REST hosts.
  return hosts.filter(({ role }) => source.hosts[role] !== undefined);
}

export function checkProxies({ proxies, hosts, options, clock }: CheckContext): Promise<CheckResult> {
  const addresses = hosts.map(({ address }) => address);
  const timeoutMs = options.connectTimeoutMs;
  return checkProxy({ rules: proxies, addresses, timeoutMs, clock });
}

/** One result for each distinct host name. */
export function checkNames({ hosts, proxies, options, clock, signal }: CheckContext): Promise<CheckResult>[] {
  const named = oncePer(hosts, ({ address }) => new URL(address).hostname);
  return named
    .filter(({ address }) => hasName(new URL(address).hostname))
    .map(({ address, flag }) =>
      checkName({
        hostname: new URL(address).hostname,
        flag,
        proxy: proxyOf(address, proxies),
        timeoutMs: options.connectTimeoutMs,
        clock,
        signal,
      }),
    );
}

/** One result for each distinct https origin. */
export function checkCertificates({
  hosts,
  proxies,
  authorities,
  options,
  clock,
  signal,
}: CheckContext): Promise<CheckResult>[] {
  return oncePer(hosts, ({ address }) => new URL(address).origin)
    .filter(({ address }) => address.startsWith('https:'))
    .map(({ address }) =>
      checkCertificate({
        address,
        proxy: proxyOf(address, proxies),
        authorities,
        timeoutMs: options.connectTimeoutMs,
        nowMs: clock.now(),
        signal,
      }),
    );
}

function oncePer(hosts: readonly Host[], by: (host: Host) => string): Host[] {
  return hosts.filter((host, at) => hosts.findIndex((other) => by(other) === by(host)) === at);
}

function hostFor({ hosts }: CheckContext, role: Host['role']): Host {
  const place = hosts.find((host) => host.role === role);
  if (place === undefined) throw new CryptodlError('bug', `no host is called ${role}`);
  return place;
}

/** Requests one page of the listing and parses it. */
export function checkListingHost(context: CheckContext): ReturnType<typeof checkListing> {
  const { listing, known } = context.source.archive;
  return checkListing(context.fetchTimed, hostFor(context, 'listing'), {
    address: known.listing,
    keysOf: (page) => listing.parse(page, known.listing).objects.map(({ key }) => key),
  });
}

/** Fetches a sidecar that the listing names, or one that should always exist. */
export async function checkArchiveHost(
  context: CheckContext,
  listing: ReturnType<typeof checkListing>,
): Promise<EndpointResult> {
  const { keys } = await listing;
  const { sidecar, known } = context.source.archive;
  const suffix = sidecar?.suffix ?? '';
  const key = keys.find((listed) => listed.endsWith(suffix)) ?? known.key + suffix;
  return checkArchive(context.fetchTimed, hostFor(context, 'archive'), keyPath(key));
}

/** Requests of weight 1. */
const TIME_PATHS = { fapi: '/fapi/v1/time', dapi: '/dapi/v1/time', spot: '/api/v3/time' } as const;

/** Checks the public spot host too, when the spot host refuses the location. */
export async function checkRestHost(
  context: CheckContext,
  role: keyof typeof TIME_PATHS,
): Promise<EndpointResult> {
  const { address, flag } = hostFor(context, role);
  const bucket = role === 'spot' ? 'spot' : 'futures';
  const path = TIME_PATHS[role];
  const endpoint = await checkRest(context.fetchTimed, { address, flag, path, bucket });
  const { spot, spotPublic } = context.source.hosts;
  const isRestricted = endpoint.result.figures['code'] === 'location-restricted';
  if (role !== 'spot' || !isRestricted || address !== spot || spotPublic === undefined) return endpoint;
  // Runs use the public host in the same case.
  const other = await checkRest(context.fetchTimed, { address: spotPublic, flag, path, bucket });
  if (other.result.status === 'fail') return endpoint;
  const found = `${endpoint.result.found}; runs use ${spotPublic} instead, which answers`;
  return { dates: other.dates, result: { ...endpoint.result, status: 'warn', found, next: '' } };
}

// Checks that DNS resolves the name of a host.

interface NameInput {
  readonly hostname: string;
  /** The flag that sets the host. */
  readonly flag: string;
  /** With a proxy, the name is not resolved here, because the proxy resolves it. */
  readonly proxy: string | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** False for IP addresses and localhost, which need no DNS. */
function hasName(hostname: string): boolean {
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 && hostname !== 'localhost';
}

const SLOW_MS = 2000;

/** Fails when the name has no address; warns when DNS takes longer than 2 s. */
async function checkName(input: NameInput): Promise<CheckResult> {
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
    return lookupFailure(hostname, flag, errnoOf(error));
  } finally {
    stop.abort();
  }
}

const RESOLVER = 'check the network and its name server (on Linux /etc/resolv.conf)';

function lookupFailure(hostname: string, flag: string, code: string): CheckResult {
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
