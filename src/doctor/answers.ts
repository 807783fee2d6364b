/** What the hosts answer: archive, listing and REST, each asked as a run would ask it, once and without retries. */
import type { FetchResponse } from '../http/fetch.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { ToldTime } from './clock-difference.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';

interface Answer {
  readonly response: FetchResponse;
  /** From sending to the first byte, and to the last. */
  readonly firstByteMs: number;
  readonly wholeMs: number;
  /** Epoch milliseconds by our clock. */
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** One attempt: it takes its permit, is counted, and has its deadlines. Rejects with a CryptodlError. */
export type Ask = (url: string, bucket: string) => Promise<Answer>;

/** A finding, and what time the host told with it. */
export interface Heard {
  readonly finding: Finding;
  readonly told: readonly ToldTime[];
}

/** The flag that names a host, for the next step. */
export interface Place {
  readonly address: string;
  readonly flag: string;
}

const PROBES = 5;
const SLOW_MS = 2000;

/** A small object, several times: the first connects, the others are on the same connection. */
export async function checkArchive(ask: Ask, place: Place, path: string): Promise<Heard> {
  const of = new URL(place.address).host;
  const answers: Answer[] = [];
  try {
    for (let probe = 0; probe < PROBES; probe += 1)
      answers.push(await ask(`${place.address}/${path}`, 'archive'));
  } catch (error) {
    const refused = refusedFinding('archive', place, toCryptodlError(error));
    if (answers.length === 0) return { finding: refused, told: [] };
    const found = `${answers.length} requests were answered, then: ${refused.found}`;
    return { finding: { ...refused, status: 'warn', found }, told: timesOf(of, answers) };
  }
  const told = timesOf(of, answers);
  const firstByteMs = medianOf(answers.map((answer) => answer.firstByteMs));
  const wholeMs = medianOf(answers.map((answer) => answer.wholeMs));
  const figures = { firstByteMs, wholeMs, probes: PROBES };
  const latency = `first byte ${firstByteMs} ms, whole ${wholeMs} ms (median of ${PROBES})`;
  if (answers.some(({ response }) => response.status === 404)) {
    const next = `check ${place.flag}: it is the address above data/`;
    const found = `answers, but has no ${decodeURIComponent(path)}; ${latency}`;
    return { told, finding: finding('archive', 'warn', found, { of, figures, next }) };
  }
  const next = firstByteMs > SLOW_MS ? 'expect long runs; is a proxy or VPN between?' : '';
  const status = next === '' ? 'ok' : 'warn';
  return { told, finding: finding('archive', status, latency, { of, figures, next }) };
}

/** `keysOf` reads a page, or throws what is wrong with it. Resolves also with the first keys. */
export async function checkListing(
  ask: Ask,
  place: Place,
  keysOf: (page: Buffer) => readonly string[],
): Promise<Heard & { readonly keys: readonly string[] }> {
  const of = new URL(place.address).host;
  try {
    const answer = await ask(`${place.address}/?prefix=data%2F&max-keys=${FIRST_KEYS}`, 'listing');
    const told = timesOf(of, [answer]);
    if (answer.response.status === 404) {
      const next = `check ${place.flag}`;
      return { told, keys: [], finding: finding('listing', 'fail', 'there is none (404)', { of, next }) };
    }
    const keys = keysOf(bytesOf(answer));
    const { firstByteMs, wholeMs } = rounded(answer);
    const latency = `first byte ${firstByteMs} ms, whole ${wholeMs} ms`;
    const words = { of, figures: { firstByteMs, wholeMs } };
    if (keys.length > 0) return { told, keys, finding: finding('listing', 'ok', latency, words) };
    const next = `check ${place.flag}: it is the address above data/`;
    const found = `lists nothing below data/; ${latency}`;
    return { told, keys, finding: finding('listing', 'warn', found, { ...words, next }) };
  } catch (error) {
    return { told: [], keys: [], finding: refusedFinding('listing', place, toCryptodlError(error)) };
  }
}

/** Enough to find a sidecar among them. */
const FIRST_KEYS = 10;

/** Of the weight 1 on every host. */
export interface RestPlace extends Place {
  /** `/fapi/v1/time` */
  readonly path: string;
  readonly bucket: string;
}

export async function checkRest(ask: Ask, place: RestPlace): Promise<Heard> {
  const of = new URL(place.address).host;
  try {
    const answer = await ask(`${place.address}${place.path}`, place.bucket);
    const told = timesOf(of, [answer]);
    if (answer.response.status === 404 || !hasServerTime(bytesOf(answer))) {
      const found = answer.response.status === 404 ? 'has no' : 'is not REST: it does not tell the time at';
      const next = `check ${place.flag}; a network that wants a login first also answers like that`;
      return { told, finding: finding('rest', 'fail', `${found} ${place.path}`, { of, next }) };
    }
    const { firstByteMs, wholeMs } = rounded(answer);
    const found = `first byte ${firstByteMs} ms, whole ${wholeMs} ms`;
    return { told, finding: finding('rest', 'ok', found, { of, figures: { firstByteMs, wholeMs } }) };
  } catch (error) {
    return { told: [], finding: refusedFinding('rest', place, toCryptodlError(error)) };
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

function bytesOf({ response }: Answer): Buffer {
  if (response.body.kind === 'memory') return response.body.bytes;
  throw new CryptodlError('bug', 'an answer was spooled that nobody gave a file for');
}

function rounded({ firstByteMs, wholeMs }: Answer): { firstByteMs: number; wholeMs: number } {
  return { firstByteMs: Math.round(firstByteMs), wholeMs: Math.round(wholeMs) };
}

function timesOf(host: string, answers: readonly Answer[]): ToldTime[] {
  return answers.flatMap(({ response, sentAt, receivedAt }) => {
    const dateMs = Date.parse(response.headers['date'] ?? '');
    return Number.isNaN(dateMs) ? [] : [{ host, dateMs, sentAt, receivedAt }];
  });
}

function medianOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return Math.round(sorted[sorted.length >> 1] ?? 0);
}

// Errors of requests as findings: what they are called, and what helps.

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

function refusedFinding(
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

interface KnownBans {
  /** Resolves to the places of which a ban was remembered. */
  clear(host: string): Promise<readonly string[]>;
  /** By place, `futures fapi.binance.com`; `until` in epoch milliseconds. */
  lasting(): Promise<ReadonlyMap<string, { readonly until: number; readonly why: string }>>;
}

/** What hosts have asked not to be asked, as earlier runs of this machine remember it. */
export async function checkBans(bans: KnownBans): Promise<Finding> {
  const lasting = [...(await bans.lasting())].sort(([, a], [, b]) => b.until - a.until);
  const [longest] = lasting;
  if (longest === undefined) return finding('bans', 'ok', 'none is remembered');
  const texts = lasting.map(([place, { until }]) => `${place} until ${dayAndTime(until)} UTC`);
  return finding('bans', 'fail', `${texts.join(', ')}: ${longest[1].why}`, {
    figures: Object.fromEntries(lasting.map(([place, { until }]) => [place, new Date(until).toISOString()])),
    next: 'run again after that; until then runs that need it end with exit code 7 and ask nothing (a ban that is a mistake is forgotten with --clear-bans HOST)',
  });
}

/** `--clear-bans HOST` */
export async function clearBans(bans: KnownBans, host: string): Promise<Finding> {
  const places = await bans.clear(host);
  const left = [...(await bans.lasting()).keys()];
  if (left.some((place) => place.endsWith(` ${host}`)))
    return finding('bans', 'fail', `the bans of ${host} could not be removed`, {
      next: 'choose a --state-dir that can be written',
    });
  if (places.length > 0) return finding('bans', 'ok', `removed: ${places.join(', ')}`);
  const others = left.length === 0 ? '' : `; remembered: ${left.join(', ')}`;
  return finding('bans', 'ok', `no ban of ${host} is remembered${others}`);
}

function dayAndTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
}
