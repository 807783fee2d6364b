/** Checks the network and judges the results together: tells one cause once, and lowers problems of hosts that no run here uses. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { walkLake } from '../lake/walk-lake.js';
import { proxyOf } from '../http/proxies/no-proxy.js';
import {
  checkArchiveHost,
  checkCertificates,
  checkListingHost,
  checkNames,
  checkProxies,
  checkRestHost,
} from './check-hosts.js';
import type { CheckContext, Host } from './check-hosts.js';
import { checkClock } from './check-machine.js';
import type { CheckResult } from './check-result.js';
import { asResult, checkResult } from './check-result.js';

const REST_ROLES = ['fapi', 'dapi', 'spot'] as const;

/** The results about the network wait for each other, because they are judged together. */
export async function checkNetwork(context: CheckContext): Promise<readonly CheckResult[]> {
  const { signal, hosts } = context;
  const all = (name: string, checks: readonly Promise<CheckResult>[]): Promise<CheckResult[]> =>
    Promise.all(checks.map((check) => asResult(name, check, signal)));
  const listing = checkListingHost(context);
  const rest = REST_ROLES.filter((role) => hosts.some((host) => host.role === role)).map((role) =>
    checkRestHost(context, role),
  );
  const endpoint = [checkArchiveHost(context, listing), listing, ...rest];
  const answers = endpoint.map(async (check) => (await check).result);
  const dates = Promise.all(endpoint).then((every) => every.flatMap((each) => each.dates));
  const [proxy, names, certificates, endpoints, clock, used] = await Promise.all([
    asResult('proxy', checkProxies(context), signal),
    all('dns', checkNames(context)),
    all('tls', checkCertificates(context)),
    all('hosts', answers),
    asResult('clock', dates.then(checkClock), signal),
    usedHosts(context),
  ]);
  const isClockKnown = 'host' in clock.figures;
  return judgeNetwork({ proxy, names, certificates, endpoints, clock }, context, { used, isClockKnown });
}

/** The results in the order of their dependence: a failure explains later failures of the same host. */
interface NetworkResults {
  readonly proxy: CheckResult;
  readonly names: readonly CheckResult[];
  readonly certificates: readonly CheckResult[];
  readonly endpoints: readonly CheckResult[];
  readonly clock: CheckResult;
}

/** `isClockKnown`: a host has sent the time. */
function judgeNetwork(
  { proxy, names, certificates, endpoints, clock }: NetworkResults,
  { hosts, proxies }: Pick<CheckContext, 'hosts' | 'proxies'>,
  { used, isClockKnown }: { readonly used: ReadonlySet<Host>; readonly isClockKnown: boolean },
): CheckResult[] {
  const isProxied = hosts.some(({ address }) => proxyOf(address, proxies) !== undefined);
  if (!isProxied && isOffline(endpoints)) {
    const cause = [...names, ...endpoints].find(({ status }) => status === 'fail')?.found ?? '';
    const found = `no network: none of ${endpoints.length} hosts can be reached; the first: ${cause}`;
    const next =
      'connect this machine to the network (cable, VPN, firewall, name server), and run cryptodl doctor again';
    const checks = [...new Set([...names, ...certificates, ...endpoints, clock].map(({ check }) => check))];
    return [proxy, checkResult('network', 'fail', found, { next }), notChecked(checks)];
  }
  const told: CheckResult[] = [proxy];
  const explained: CheckResult[] = [];
  const failed = new Set(proxy.status === 'fail' ? hostsBehind(hosts, proxies) : []);
  // A result about a name has no port.
  const isExplained = (found: CheckResult): boolean => failed.has(found.of) || failed.has(nameOf(found));
  for (const stage of [names, certificates, endpoints]) {
    for (const found of stage) (isFailed(found) && isExplained(found) ? explained : told).push(found);
    for (const found of stage) if (isFailed(found)) failed.add(found.of);
  }
  (explained.length > 0 && !isClockKnown ? explained : told).push(clock);
  const inUse = new Set(
    [...used].map(({ address }) => new URL(address)).flatMap(({ host, hostname }) => [host, hostname]),
  );
  const judged = told.map((found) => (found.of === '' || inUse.has(found.of) ? found : lowered(found)));
  if (explained.length === 0) return judged;
  return [...judged, notChecked(explained.map(({ check, of }) => `${check} ${of}`.trim()))];
}

/** Codes of requests that reached no server. */
const UNREACHED: ReadonlySet<unknown> = new Set([
  'host-unknown',
  'dns-failed',
  'connect-failed',
  'connect-timeout',
]);

function isOffline(endpoints: readonly CheckResult[]): boolean {
  return (
    new Set(endpoints.map(nameOf)).size > 1 &&
    endpoints.every(({ figures }) => UNREACHED.has(figures['code']))
  );
}

function notChecked(checks: readonly string[]): CheckResult {
  return checkResult('network', 'note', `not checked, because of the problem above: ${checks.join(', ')}`);
}

function lowered(found: CheckResult): CheckResult {
  if (found.status === 'ok') return found;
  return {
    ...found,
    status: 'note',
    found: `${found.found}; neither this lake nor an option uses this host`,
    next: '',
  };
}

function isFailed({ status }: CheckResult): boolean {
  return status === 'fail';
}

/** The host name without its port. */
function nameOf({ of }: CheckResult): string {
  return new URL(`http://${of}`).hostname;
}

function hostsBehind(hosts: readonly Host[], proxies: CheckContext['proxies']): string[] {
  return hosts
    .filter(({ address }) => proxyOf(address, proxies) !== undefined)
    .map(({ address }) => new URL(address).host);
}

/**
 * The hosts that an option names, and those from which the lake has objects. A lake without objects counts as one of the archive.
 */
async function usedHosts({
  hosts,
  options,
  origins,
  paths,
  source,
}: CheckContext): Promise<ReadonlySet<Host>> {
  const ofLake = await rolesOfLake({ hosts, options, paths, source });
  const archive = hosts.filter(({ role }) => role === 'archive' || role === 'listing');
  const isArchiveUsed = ofLake.size === 0 || ofLake.has('archive') || archive.some(isGiven);
  function isGiven({ flag }: Host): boolean {
    return origins[flag.slice(2) as keyof typeof origins] !== 'default';
  }
  return new Set(
    hosts.filter((host) => (archive.includes(host) ? isArchiveUsed : ofLake.has(host.role) || isGiven(host))),
  );
}

/** The hosts of the objects in the manifests. Reads a manifest only while it can add a host. */
async function rolesOfLake({
  hosts,
  options,
  paths: { root },
  source,
}: Pick<CheckContext, 'hosts' | 'options' | 'paths' | 'source'>): Promise<Set<Host['role']>> {
  const roles = new Set<Host['role']>();
  const restRole = (market: string): Host['role'] | undefined => {
    const places = source.rest.places(options, market);
    return hosts.find(({ address }) => places.some((place) => place.endsWith(` ${new URL(address).host}`)))
      ?.role;
  };
  try {
    for await (const found of walkLake(root, source)) {
      if (found.kind !== 'series' || found.manifest === undefined || found.manifest.isLink) continue;
      const rest = restRole(found.series.market);
      if (roles.has('archive') && (rest === undefined || roles.has(rest))) continue;
      const text = await readFile(join(root, found.manifest.path), 'utf8');
      if (text.includes('"key":"rest/')) roles.add(rest ?? 'archive');
      if (text.includes(`"key":"${source.archive.topFolder}/`)) roles.add('archive');
    }
  } catch {
    // The checks of the lake report an unreadable lake. Its hosts are those found so far.
  }
  return roles;
}
