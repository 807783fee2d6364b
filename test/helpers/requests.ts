/** Requests, answers and refusals for tests of the layers. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { CryptodlError } from '../../src/model/errors.js';
import type { Body, FetchContext, FetchRequest, FetchResponse } from '../../src/model/fetch.js';

export const REQUEST: FetchRequest = { url: 'http://archive.test/data/a.zip', bucket: 'archive' };

export function context(signal = new AbortController().signal): FetchContext {
  return { signal, traceId: 'trace' };
}

export function answer(content: Buffer | string = '', status: 200 | 404 = 200, body?: Body): FetchResponse {
  const bytes = Buffer.from(content);
  return {
    status,
    headers: {},
    body: body ?? { kind: 'memory', bytes },
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

/** The typed error that the promise rejects with; anything else fails the test. */
export async function refusal(promise: Promise<unknown>): Promise<CryptodlError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CryptodlError);
  return error as CryptodlError;
}
