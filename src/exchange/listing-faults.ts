/** Failures of a listing. */
import { CryptodlError } from '../model/errors.js';

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
