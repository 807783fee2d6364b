/** What the hosts answer: archive, listing and REST, each asked as a run would ask it, once and without retries. */
import { CryptodlError, toCryptodlError } from '../errors.js';
import type { FetchResponse } from '../fetch.js';
import type { ToldTime } from './clock-difference.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';
import { refusedFinding } from './refused.js';

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
