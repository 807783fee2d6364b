/** Is this the object that was published? Length, magic and digest, on every attempt. */
import { open } from 'node:fs/promises';
import { CryptodlError } from '../errors.js';
import { bodySize } from '../fetch.js';
import type { Body, Expectation, FetchResponse, Layer } from '../fetch.js';

/**
 * Rejects with `not-a-zip`, `length-mismatch`, `checksum-mismatch` or `zip-truncated`, the refused body as evidence.
 * The published digest is asked for at the same time as the object, and anew (past caches) on every attempt:
 * a replacement upstream is two writes.
 */
export const verify: Layer = (next) => async (request, context) => {
  const { expect } = request;
  if (expect === undefined) return next(request, context);
  const published = expect.sha256?.(request.bypassCache === true) ?? Promise.resolve(undefined);
  // Whoever fails first decides; the other promise must not become an unhandled rejection.
  published.catch(() => undefined);
  const response = await next(request, context);
  expect.check?.(response);
  if (response.status === 404) return response;
  const [head, tail] = await ends(response.body);
  if (expect.zip && !isZipStart(head)) {
    throw refuse(
      'not-a-zip',
      `not a zip: it starts with ${JSON.stringify(head.toString('latin1').slice(0, 40))}`,
      response,
    );
  }
  const difference = digestDifference(expect, response, await published);
  if (difference === undefined) return response;
  const cut = expect.zip && !tail.includes('PK\u0005\u0006', 0, 'latin1');
  throw cut
    ? refuse('zip-truncated', `${difference}; the zip is cut, it has no end record`, response)
    : refuse(difference.startsWith('length') ? 'length-mismatch' : 'checksum-mismatch', difference, response);
};

function digestDifference(
  expect: Expectation,
  response: FetchResponse,
  published: string | undefined,
): string | undefined {
  if (expect.md5 !== undefined && response.md5 !== undefined) {
    return response.md5 === expect.md5
      ? undefined
      : `MD5 is ${response.md5}, the listing's ETag says ${expect.md5}`;
  }
  if (published !== undefined) {
    return response.sha256 === published
      ? undefined
      : `SHA-256 is ${response.sha256}, the sidecar says ${published}`;
  }
  const size = bodySize(response.body);
  if (expect.bytes === undefined || expect.bytes === size) return undefined;
  return `length is ${size} bytes, the listing says ${expect.bytes}`;
}

function refuse(
  code: 'not-a-zip' | 'length-mismatch' | 'checksum-mismatch' | 'zip-truncated',
  message: string,
  evidence: FetchResponse,
): CryptodlError {
  return new CryptodlError(code, message, { evidence });
}

function isZipStart(head: Buffer): boolean {
  const magic = head.subarray(0, 4).toString('latin1');
  return magic === 'PK\u0003\u0004' || magic === 'PK\u0005\u0006';
}

/** The longest tail that can hold the end record: 22 bytes and a comment of 65,535. */
const TAIL_BYTES = 65_557;

async function ends(body: Body): Promise<[Buffer, Buffer]> {
  if (body.kind === 'memory') {
    return [body.bytes.subarray(0, 64), body.bytes.subarray(Math.max(0, body.bytes.length - TAIL_BYTES))];
  }
  const file = await open(body.path, 'r');
  try {
    const head = Buffer.alloc(Math.min(64, body.size));
    const tail = Buffer.alloc(Math.min(TAIL_BYTES, body.size));
    await file.read(head, 0, head.length, 0);
    await file.read(tail, 0, tail.length, body.size - tail.length);
    return [head, tail];
  } finally {
    await file.close();
  }
}
