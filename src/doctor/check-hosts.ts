/** Checks each host that runs use: proxy, name, certificate, archive, listing and REST. */
import type { Clock } from '../model/clock.js';
import { checkArchive, checkListing, checkRest } from './check-endpoints.js';
import type { TimedFetch, EndpointResult } from './check-endpoints.js';
import { checkCertificate } from './check-certificate.js';
import type { CheckResult } from './check-result.js';
import { checkName, hasName } from './check-name.js';
import { checkProxy, proxyOf } from './check-proxy.js';
import { CryptodlError } from '../model/errors.js';
import type { Io } from '../model/io.js';
import type { LakePaths } from '../lake/layout.js';
import type { Options } from '../options/flags.js';
import type { Proxies, Surroundings } from '../options/environment.js';
import type { Bans } from '../http/bans.js';
import { listingUrl } from '../source/hosts.js';
import { keyPath } from '../source/keys.js';
import type { Source } from '../source/source.js';

export interface DoctorRequest {
  readonly source: Source;
  readonly options: Options;
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
  readonly hosts: readonly Host[];
  readonly fetchTimed: TimedFetch;
}

/** A host that runs use, and the flag that sets its address. */
export interface Host {
  readonly role: 'archive' | 'listing' | 'fapi' | 'dapi' | 'spot';
  readonly address: string;
  readonly flag: string;
}

/** All hosts of a run. */
export function hostsOf({ options, source }: DoctorRequest): Host[] {
  return [
    { role: 'archive', address: options.archiveUrl, flag: '--archive-url' },
    { role: 'listing', address: listingUrl(options, source), flag: '--listing-url' },
    { role: 'fapi', address: options.fapiUrl, flag: '--fapi-url' },
    { role: 'dapi', address: options.dapiUrl, flag: '--dapi-url' },
    { role: 'spot', address: options.spotUrl, flag: '--spot-url' },
  ];
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
