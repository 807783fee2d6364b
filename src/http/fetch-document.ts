/** Requests of documents that are kept in memory. */
import { randomUUID } from 'node:crypto';
import { CryptodlError } from '../model/errors.js';
import type { Expectation, Fetch, FetchRequest, FetchResponse } from '../model/fetch.js';

/** Requests a document, and reads it. If `read` throws a retryable error, the request is retried. `missing`: the error for 404. */
export async function fetchDocument<T>(
  { fetch, signal }: { readonly fetch: Fetch; readonly signal: AbortSignal },
  request: FetchRequest & { readonly maxBytes: number },
  read: (bytes: Buffer, headers: FetchResponse['headers']) => T,
  missing: () => CryptodlError,
): Promise<T> {
  let found: { readonly value: T } | undefined;
  const expect: Expectation = {
    check: ({ status, body, headers }) => {
      if (status === 404 || body.kind === 'file') throw missing();
      found = { value: read(body.bytes, headers) };
    },
  };
  const inMemory = { ...request, spoolAboveBytes: request.maxBytes, expect };
  await fetch(inMemory, { signal, traceId: randomUUID() });
  if (found === undefined) throw new CryptodlError('bug', `the answer of ${request.url} was not checked`);
  return found.value;
}
