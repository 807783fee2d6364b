/** The hosts that runs ask, as `cryptodl doctor` looks at them. */
import type { Clock } from '../model/clock.js';
import { checkArchive, checkListing, checkRest } from './answers.js';
import type { Ask, Heard } from './answers.js';
import { checkCertificate } from './certificate.js';
import type { Finding } from './finding.js';
import { checkName, hasName } from './names.js';
import { checkProxy, proxyOf } from './proxy.js';
import { CryptodlError } from '../model/errors.js';
import type { Io } from '../model/io.js';
import type { LakePaths } from '../lake/layout.js';
import type { Options } from '../options/flags.js';
import type { Proxies, Surroundings } from '../options/environment.js';
import { parseListing } from '../source/listing-xml.js';
import type { Bans } from '../http/bans.js';
import { keyPath, SIDECAR } from '../source/keys.js';
import type { Venue } from '../source/venue.js';

export interface ExamineRequest {
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What this process may have. */
  readonly limits: Io['limits'];
  readonly warn: (message: string) => void;
}

/** Everything that the checks share. */
export interface Scene extends ExamineRequest {
  readonly venue: Venue;
  readonly paths: LakePaths;
  readonly proxies: Proxies;
  readonly authorities: string | undefined;
  readonly bans: Bans;
  readonly hosts: readonly HostPlace[];
  readonly ask: Ask;
}

/** A host that runs ask, and the flag that names it. */
export interface HostPlace {
  readonly role: 'archive' | 'listing' | 'fapi' | 'dapi' | 'spot';
  readonly address: string;
  readonly flag: string;
}

/** Small objects whose sidecar every copy of the archive should have; asked for when the listing names none. */
const KNOWN_KEY = 'data/spot/daily/klines/BTCUSDT/1d/BTCUSDT-1d-2021-01-01.zip';

export function proxyFinding({ proxies, hosts, options, clock }: Scene): Promise<Finding> {
  const addresses = hosts.map(({ address }) => address);
  const timeoutMs = options.connectTimeoutMs;
  return checkProxy({ rules: proxies, addresses, timeoutMs, clock });
}

export function names({ hosts, proxies, options, clock, signal }: Scene): Promise<Finding>[] {
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

export function certificates({
  hosts,
  proxies,
  authorities,
  options,
  clock,
  signal,
}: Scene): Promise<Finding>[] {
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

function oncePer(hosts: readonly HostPlace[], by: (host: HostPlace) => string): HostPlace[] {
  return hosts.filter((host, at) => hosts.findIndex((other) => by(other) === by(host)) === at);
}

function placeFor({ hosts }: Scene, role: HostPlace['role']): HostPlace {
  const place = hosts.find((host) => host.role === role);
  if (place === undefined) throw new CryptodlError('bug', `no host is called ${role}`);
  return place;
}

export function listingOf(scene: Scene): ReturnType<typeof checkListing> {
  return checkListing(scene.ask, placeFor(scene, 'listing'), (page) =>
    parseListing(page).objects.map(({ key }) => key),
  );
}

export async function archiveOf(scene: Scene, listing: ReturnType<typeof checkListing>): Promise<Heard> {
  const { keys } = await listing;
  const key = keys.find((listed) => listed.endsWith(SIDECAR)) ?? `${KNOWN_KEY}${SIDECAR}`;
  return checkArchive(scene.ask, placeFor(scene, 'archive'), keyPath(key));
}

/** They weigh 1 each. */
const TIME_PATHS = { fapi: '/fapi/v1/time', dapi: '/dapi/v1/time', spot: '/api/v3/time' } as const;

export async function restOf(scene: Scene, role: keyof typeof TIME_PATHS): Promise<Heard> {
  const { address, flag } = placeFor(scene, role);
  const bucket = role === 'spot' ? 'spot' : 'futures';
  const path = TIME_PATHS[role];
  const heard = await checkRest(scene.ask, { address, flag, path, bucket });
  const { spot, spotPublic } = scene.venue.hosts;
  const isRestricted = heard.finding.figures['code'] === 'location-restricted';
  if (role !== 'spot' || !isRestricted || address !== spot) return heard;
  // Runs do the same.
  const other = await checkRest(scene.ask, { address: spotPublic, flag, path, bucket });
  if (other.finding.status === 'fail') return heard;
  const found = `${heard.finding.found}; ${spotPublic} is asked instead, and answers`;
  return { told: other.told, finding: { ...heard.finding, status: 'warn', found, next: '' } };
}
