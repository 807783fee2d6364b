/** Checks the archive, the listing and REST with the requests of a run, without retries. REST is also asked for its time. */
import type { FetchResponse } from '../http/fetch.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { ServerDate } from './check-machine.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

interface TimedResponse {
  readonly response: FetchResponse;
  /** Time from sending the request to the first byte. */
  readonly firstByteMs: number;
  /** Time from sending the request to the last byte. */
  readonly wholeMs: number;
  /** Epoch milliseconds of the local clock. */
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** Sends one attempt through the request stack, with permit and deadlines. Rejects with a CryptodlError. */
export type TimedFetch = (url: string, bucket: string) => Promise<TimedResponse>;

/** The result of a check, and the times in the `Date` headers of the responses. */
export interface EndpointResult {
  readonly result: CheckResult;
  readonly dates: readonly ServerDate[];
}

/** A host, and the flag that sets its address. */
export interface HostAddress {
  readonly address: string;
  readonly flag: string;
}

const PROBES = 5;
const SLOW_MS = 2000;

/** Fetches a small object several times. With keep-alive, only the first request opens a connection. */
export async function checkArchive(
  fetchTimed: TimedFetch,
  host: HostAddress,
  path: string,
): Promise<EndpointResult> {
  const of = new URL(host.address).host;
  const answers: TimedResponse[] = [];
  try {
    for (let probe = 0; probe < PROBES; probe += 1)
      answers.push(await fetchTimed(`${host.address}/${path}`, 'archive'));
  } catch (error) {
    const refused = errorResult('archive', host, toCryptodlError(error));
    if (answers.length === 0) return { result: refused, dates: [] };
    const found = `${answers.length} requests succeeded, then: ${refused.found}`;
    return { result: { ...refused, status: 'warn', found }, dates: datesOf(of, answers) };
  }
  const dates = datesOf(of, answers);
  const firstByteMs = medianOf(answers.map((answer) => answer.firstByteMs));
  const wholeMs = medianOf(answers.map((answer) => answer.wholeMs));
  const figures = { firstByteMs, wholeMs, probes: PROBES };
  const latency = `first byte ${firstByteMs} ms, whole ${wholeMs} ms (median of ${PROBES})`;
  if (answers.some(({ response }) => response.status === 404)) {
    const next = `check ${host.flag}: it must be the address above data/`;
    const found = `the host answers, but has no ${decodeURIComponent(path)}; ${latency}`;
    return { dates, result: checkResult('archive', 'warn', found, { of, figures, next }) };
  }
  const next = firstByteMs > SLOW_MS ? 'expect long runs; check whether a proxy or VPN is in use' : '';
  const status = next === '' ? 'ok' : 'warn';
  return { dates, result: checkResult('archive', status, latency, { of, figures, next }) };
}

/** `keysOf` parses a page, or throws a CryptodlError. The result includes the keys of the page. */
export async function checkListing(
  fetchTimed: TimedFetch,
  host: HostAddress,
  { address, keysOf }: { readonly address: string; readonly keysOf: (page: Buffer) => readonly string[] },
): Promise<EndpointResult & { readonly keys: readonly string[] }> {
  const of = new URL(host.address).host;
  try {
    const answer = await fetchTimed(host.address + address, 'listing');
    const dates = datesOf(of, [answer]);
    if (answer.response.status === 404) {
      const next = `check ${host.flag}`;
      return {
        dates,
        keys: [],
        result: checkResult('listing', 'fail', 'the host has no listing (404)', { of, next }),
      };
    }
    const keys = keysOf(bytesOf(answer));
    const { firstByteMs, wholeMs } = rounded(answer);
    const latency = `first byte ${firstByteMs} ms, whole ${wholeMs} ms`;
    const words = { of, figures: { firstByteMs, wholeMs } };
    if (keys.length > 0) return { dates, keys, result: checkResult('listing', 'ok', latency, words) };
    const next = `check ${host.flag}: it must be the address above data/`;
    const found = `the listing has no objects below data/; ${latency}`;
    return { dates, keys, result: checkResult('listing', 'warn', found, { ...words, next }) };
  } catch (error) {
    return { dates: [], keys: [], result: errorResult('listing', host, toCryptodlError(error)) };
  }
}

/** A REST host, and a path of weight 1 on it. */
export interface RestAddress extends HostAddress {
  /** `/fapi/v1/time` */
  readonly path: string;
  readonly bucket: string;
}

/** Fails when the host does not return its server time. */
export async function checkRest(fetchTimed: TimedFetch, host: RestAddress): Promise<EndpointResult> {
  const of = new URL(host.address).host;
  try {
    const answer = await fetchTimed(`${host.address}${host.path}`, host.bucket);
    const dates = datesOf(of, [answer]);
    if (answer.response.status === 404 || !hasServerTime(bytesOf(answer))) {
      const found =
        answer.response.status === 404 ? 'the host has no' : 'not REST of the exchange: no server time at';
      const next = `check ${host.flag}; a network with a login page answers like this too`;
      return { dates, result: checkResult('rest', 'fail', `${found} ${host.path}`, { of, next }) };
    }
    const { firstByteMs, wholeMs } = rounded(answer);
    const found = `first byte ${firstByteMs} ms, whole ${wholeMs} ms`;
    return { dates, result: checkResult('rest', 'ok', found, { of, figures: { firstByteMs, wholeMs } }) };
  } catch (error) {
    return { dates: [], result: errorResult('rest', host, toCryptodlError(error)) };
  }
}

function hasServerTime(body: Buffer): boolean {
  try {
    const content = JSON.parse(body.toString('utf8')) as unknown;
    return typeof content === 'object' && content !== null && 'serverTime' in content;
  } catch {
    return false;
  }
}

function bytesOf({ response }: TimedResponse): Buffer {
  if (response.body.kind === 'memory') return response.body.bytes;
  throw new CryptodlError('bug', 'a response was spooled although the request named no file');
}

function rounded({ firstByteMs, wholeMs }: TimedResponse): { firstByteMs: number; wholeMs: number } {
  return { firstByteMs: Math.round(firstByteMs), wholeMs: Math.round(wholeMs) };
}

function datesOf(host: string, answers: readonly TimedResponse[]): ServerDate[] {
  return answers.flatMap(({ response, sentAt, receivedAt }) => {
    const dateMs = Date.parse(response.headers['date'] ?? '');
    return Number.isNaN(dateMs) ? [] : [{ host, dateMs, sentAt, receivedAt }];
  });
}

function medianOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return Math.round(sorted[sorted.length >> 1] ?? 0);
}

// Errors of requests as results, with the next step for each code.

const ARCHIVE_INSTEAD =
  'use cryptodl vision if the lines "archive" and "listing" are ok; the archive publishes funding rates and metrics a day or a month later';

type Next = (flag: string, isRest: boolean) => string;

const NETWORK: Next = (flag) => `check the network, firewalls, --proxy and ${flag}`;
const LATER: Next = () => 'wait until that time: requests before it can make the wait longer';

const NEXT: Readonly<Partial<Record<ErrorCode, Next>>> = {
  'location-restricted': (_, isRest) => (isRest ? ARCHIVE_INSTEAD : 'try from a network in another country'),
  'address-blocked': (_, isRest) =>
    `the firewall of the host refuses this address: wait, or try from another network (it often refuses shared VPN and cloud addresses)${isRest ? `; ${ARCHIVE_INSTEAD}` : ''}`,
  'http-forbidden': (flag) => `check ${flag}: the host does not permit reading`,
  'http-server-error': () => 'the host has an internal error: try again later',
  'connect-failed': NETWORK,
  'connect-timeout': NETWORK,
  'host-unknown': (flag) => `check the network and ${flag}`,
  'dns-failed': (flag) => `check the network and ${flag}`,
  'headers-timeout': (flag) => `try again later, or with a longer --headers-timeout; check ${flag}`,
  'total-timeout': () => 'try again later, or with a longer --total-timeout',
  'idle-timeout': () => 'try again later, or with a longer --idle-timeout',
  'rate-limited': LATER,
  banned: LATER,
  'wait-too-long': () => 'run cryptodl doctor again in a minute',
  'listing-malformed': (flag) => `check ${flag}; a network with a login page answers like this too`,
};

function errorResult(
  check: string,
  { address, flag }: { readonly address: string; readonly flag: string },
  error: CryptodlError,
): CheckResult {
  const { host } = new URL(address);
  // The printed line begins with the host.
  const message = error.message.startsWith(host)
    ? error.message.slice(host.length).replace(/^:? /, '')
    : error.message;
  const next = NEXT[error.code]?.(flag, check === 'rest') ?? error.hint ?? `check ${flag}`;
  // No request was sent, so the host may work.
  const status = error.code === 'wait-too-long' ? 'warn' : 'fail';
  return checkResult(check, status, `${message} (${error.code})`, {
    of: host,
    next,
    figures: { code: error.code },
  });
}

interface BanStore {
  /** Removes the bans of a host. Resolves with the removed ones, as in `lasting`. */
  clear(host: string): Promise<readonly string[]>;
  /** By bucket and host: `futures fapi.binance.com`; `until` in epoch milliseconds. */
  current(): Promise<ReadonlyMap<string, { readonly until: number; readonly why: string }>>;
}

/** Reports the bans that earlier runs on this machine have recorded. */
export async function checkBans(bans: BanStore): Promise<CheckResult> {
  const current = [...(await bans.current())].sort(([, a], [, b]) => b.until - a.until);
  const [longest] = current;
  if (longest === undefined) return checkResult('bans', 'ok', 'none in force');
  const texts = current.map(([place, { until }]) => `${place} until ${dayAndTime(until)} UTC`);
  return checkResult('bans', 'fail', `${texts.join(', ')}: ${longest[1].why}`, {
    figures: Object.fromEntries(current.map(([place, { until }]) => [place, new Date(until).toISOString()])),
    next: 'run again after that; until then, runs that need the host send no request and end with exit code 7 (--clear-bans HOST removes a wrong ban)',
  });
}

/** `--clear-bans HOST`: removes the bans of the host and reports the others. */
export async function clearBans(bans: BanStore, host: string): Promise<CheckResult> {
  const places = await bans.clear(host);
  const left = [...(await bans.current()).keys()];
  if (left.some((place) => place.endsWith(` ${host}`)))
    return checkResult('bans', 'fail', `the bans of ${host} could not be removed`, {
      next: 'choose a writable --state-dir',
    });
  if (places.length > 0) return checkResult('bans', 'ok', `removed: ${places.join(', ')}`);
  const others = left.length === 0 ? '' : `; bans in force: ${left.join(', ')}`;
  return checkResult('bans', 'ok', `no ban of ${host} is in force${others}`);
}

function dayAndTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
}
