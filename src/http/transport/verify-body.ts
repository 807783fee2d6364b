/** A layer that checks the format, digest and length of a body, on every attempt. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { withFile } from '../../files/disk.js';
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { bodySize, type Body, type Expectation, type FetchResponse, type Layer } from '../../model/fetch.js';

/**
 * Refuses a body with `not-a-zip`, `length-mismatch`, `zip-truncated`, `body-damaged`, `sidecar-stale` or `checksum-mismatch`;
 * the error carries the refused body as evidence. The published digest is requested together with the object. After a mismatch
 * it is requested again, past caches, because the archive replaces an object and its sidecar in two separate writes.
 */
export const verifyLayer: Layer = (next) => (request, context) =>
  request.expect === undefined
    ? next(request, context)
    : verified(request.expect, request.bypassCache === true, () => next(request, context));

async function verified(
  expect: Expectation,
  bypassCache: boolean,
  send: () => Promise<FetchResponse>,
): Promise<FetchResponse> {
  const published = expect.sha256?.(bypassCache);
  // The first failure decides. The other promise must not become an unhandled rejection.
  published?.catch(() => undefined);
  const response = await send();
  expect.check?.(response);
  if (response.status !== 200) return response;
  const { format } = expect;
  const [head, tail] = await ends(response.body, format?.tailBytes ?? 0);
  if (format !== undefined && !format.isStart(head)) {
    throw refuse(
      'not-a-zip',
      `not a ${format.name}: it starts with ${JSON.stringify(head.toString('latin1').slice(0, 40))}`,
      response,
    );
  }
  const digest = await published;
  const difference = await digestDifference(expect, response, digest);
  if (difference === undefined) return response;
  if (format?.hasEnd(tail) === false)
    throw refuse('zip-truncated', `${difference}; the ${format.name} is cut, it has no end record`, response);
  if ((digest ?? expect.md5) === undefined) throw refuse('length-mismatch', difference, response);
  throw await explain(expect, response, difference);
}

/** What differs, in words; undefined for a body that meets its expectation. Without a published digest, the ETag of the listing decides; without both, the length. */
async function digestDifference(
  expect: Expectation,
  response: FetchResponse,
  published: string | undefined,
): Promise<string | undefined> {
  if (published !== undefined) {
    if (response.sha256 === published) return undefined;
    return `SHA-256 is ${response.sha256}, the sidecar says ${published}`;
  }
  if (expect.md5 !== undefined) {
    const md5 = await md5Of(response.body);
    if (md5 === expect.md5) return undefined;
    return `MD5 is ${md5}, the listing's ETag says ${expect.md5}`;
  }
  const size = bodySize(response.body);
  if (expect.bytes === undefined || expect.bytes === size) return undefined;
  return `length is ${size} bytes, the listing says ${expect.bytes}`;
}

/**
 * The error for a difference. The MD5 of the answer's ETag, or else of the listing, decides between a damaged transfer
 * (`body-damaged`) and a wrong sidecar (`sidecar-stale`). `checksum-mismatch`: undecided, because the object is being replaced
 * or no ETag is an MD5.
 */
async function explain(
  { bytes, md5: listed }: Expectation,
  response: FetchResponse,
  text: string,
): Promise<CryptodlError> {
  const expectedMd5 = md5OfEtag(response.headers['etag']) ?? listed;
  if (expectedMd5 === undefined) return refuse('checksum-mismatch', text, response);
  const md5 = await md5Of(response.body);
  if (md5 !== expectedMd5) {
    const reason =
      expectedMd5 === listed ? 'it is not the listed object' : `its own ETag says ${expectedMd5}`;
    return refuse('body-damaged', `${text}; ${reason}`, response);
  }
  const isListed = (listed ?? md5) === md5 && (bytes ?? bodySize(response.body)) === bodySize(response.body);
  return isListed
    ? refuse(
        'sidecar-stale',
        `${text}, but size and ETag are right (--stale-checksum warn accepts it)`,
        response,
      )
    : refuse('checksum-mismatch', text, response);
}

/** The MD5 in an ETag; undefined for an ETag that is no MD5, such as that of a multipart upload. */
export function md5OfEtag(etag: string | undefined): string | undefined {
  return /^(?:W\/)?"?([0-9a-f]{32})"?$/.exec(etag ?? '')?.[1];
}

async function md5Of(body: Body): Promise<string> {
  const hash = createHash('md5');
  if (body.kind === 'memory') return hash.update(body.bytes).digest('hex');
  for await (const chunk of createReadStream(body.path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function refuse(code: ErrorCode, message: string, evidence: FetchResponse): CryptodlError {
  return new CryptodlError(code, message, { evidence });
}

const HEAD_BYTES = 64;

async function ends(body: Body, tailBytes: number): Promise<[Buffer, Buffer]> {
  if (body.kind === 'memory') {
    const { bytes } = body;
    return [bytes.subarray(0, HEAD_BYTES), bytes.subarray(Math.max(0, bytes.length - tailBytes))];
  }
  const head = Buffer.alloc(Math.min(HEAD_BYTES, body.size));
  const tail = Buffer.alloc(Math.min(tailBytes, body.size));
  await withFile(body.path, 'r', async (file) => {
    await file.read(head, 0, head.length, 0);
    await file.read(tail, 0, tail.length, body.size - tail.length);
  });
  return [head, tail];
}
