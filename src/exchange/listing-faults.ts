/** Failures of a listing, and the pause after several of them. */
import { CryptodlError, NO_CONNECTION } from '../model/errors.js';
import type { ListingPage } from './exchange.js';

export type GetListing = (address: string) => Promise<ListingPage>;

/** Whether the archive may still answer after this error of its listing. */
export const isListingFault = (error: unknown): error is CryptodlError =>
  error instanceof CryptodlError && (!error.fatal || error.code === 'unreachable');

/** Undefined if the listing does not tell. */
export async function unlessListingFault<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (isListingFault(error)) return undefined;
    throw error;
  }
}

/** Turns failures of the listing except `wait-too-long` into `unreachable`, for verbs that need it. Returns other errors unchanged. */
export function asUnreachable(error: unknown): unknown {
  if (!isListingFault(error) || error.code === 'wait-too-long') return error;
  return new CryptodlError('unreachable', `the listing is not available: ${error.message}`, {
    cause: error,
    hint: 'check the network, --archive-url and --listing-url',
  });
}

/** Consecutive failures before requests pause. */
const FAILURES_TO_PAUSE = 3;
const PAUSE_MS = 60_000;

/** During a pause, requests fail with the last error. Otherwise each series would wait for a listing that does not answer. */
export function pauseAfterFailures(get: GetListing, monotonic = () => 0): GetListing {
  let failures = 0;
  let last: { readonly error: CryptodlError; readonly atMs: number } | undefined;
  return async (address) => {
    if (last !== undefined && failures >= FAILURES_TO_PAUSE && monotonic() - last.atMs < PAUSE_MS)
      throw last.error;
    try {
      const page = await get(address);
      failures = 0;
      return page;
    } catch (error) {
      if (isListingFault(error)) {
        last = { error, atMs: monotonic() };
        const isDown = error.code === 'unreachable' || NO_CONNECTION.has(error.code);
        failures = isDown ? FAILURES_TO_PAUSE : failures + 1;
      }
      throw error;
    }
  };
}
