/** Multipart uploads: a large file is stored part by part, and each part is repeated on its own. */
import { CryptodlError } from '../model/errors.js';
import { malformed, neededIn, rootOf, textIn } from '../source/s3-xml.js';
import { isLabel } from '../text/label.js';
import { digestsOf } from './digests.js';
import { inParallel } from './in-parallel.js';
import { errorName } from './refusals.js';
import { etagOf, textOf } from './requests.js';
import type { S3Requests } from './requests.js';

const MIB = 1024 * 1024;

export interface MultipartSizes {
  /** Larger files are stored in parts. */
  readonly aboveBytes: number;
  /** The size of a part, at least. S3 refuses parts below 5 MiB, except for the last one. */
  readonly partBytes: number;
}

export const MULTIPART: MultipartSizes = { aboveBytes: 64 * MIB, partBytes: 16 * MIB };
/** S3 user guide, "Amazon S3 multipart upload limits". */
const MOST_PARTS = 10_000;
const PARTS_AT_ONCE = 3;

export interface MultipartPut {
  /** The whole key. */
  readonly key: string;
  readonly path: string;
  readonly size: number;
  /** Headers of the object. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Headers of the condition, which applies when the parts are put together. */
  readonly condition: Readonly<Record<string, string>>;
}

interface StoredPart {
  readonly number: number;
  readonly etag: string;
}

/** Parts of at least `leastBytes`, so large that `MOST_PARTS` suffice. */
export function partBytesOf(size: number, leastBytes: number): number {
  return Math.max(leastBytes, Math.ceil(size / MOST_PARTS / MIB) * MIB);
}

/** Resolves with the status of the last request: 200, 404, 412 or 501. An upload that does not end with 200 is aborted. */
export async function putParts(
  requests: S3Requests,
  put: MultipartPut,
  leastPartBytes: number,
): Promise<{ readonly status: number; readonly etag: string }> {
  const uploadId = await begin(requests, put);
  let isDone = false;
  try {
    const parts = await storeParts(requests, put, { uploadId, leastPartBytes });
    const end = await complete(requests, put, { uploadId, parts });
    isDone = end.status === 200;
    return end;
  } finally {
    // The first error counts. What cannot be aborted now is left to the bucket, which may have a rule for this.
    if (!isDone) await abortUpload(requests, put.key, uploadId).catch(() => undefined);
  }
}

async function abortUpload(requests: S3Requests, key: string, uploadId: string): Promise<void> {
  await requests.send({ method: 'DELETE', key, query: { uploadId } });
}

async function begin(requests: S3Requests, { key, metadata }: MultipartPut): Promise<string> {
  let uploadId: string | undefined;
  const response = await requests.send({
    method: 'POST',
    key,
    query: { uploads: '' },
    headers: metadata,
    check: ({ status, body }) => {
      if (status === 200 && body.kind === 'memory') uploadId = parseUploadId(body.bytes);
    },
  });
  if (uploadId === undefined) throw requests.refused(errorName(textOf(response)) ?? String(response.status));
  return uploadId;
}

async function storeParts(
  requests: S3Requests,
  { key, path, size }: MultipartPut,
  { uploadId, leastPartBytes }: { readonly uploadId: string; readonly leastPartBytes: number },
): Promise<StoredPart[]> {
  const partBytes = partBytesOf(size, leastPartBytes);
  const numbers = Array.from({ length: Math.ceil(size / partBytes) }, (_, index) => index + 1);
  const parts: StoredPart[] = [];
  await inParallel(numbers, PARTS_AT_ONCE, async (number) => {
    const from = (number - 1) * partBytes;
    const length = Math.min(partBytes, size - from);
    const { sha256, md5 } = await digestsOf(path, from, length);
    const response = await requests.send({
      method: 'PUT',
      key,
      query: { partNumber: String(number), uploadId },
      headers: { 'content-md5': md5 },
      sha256,
      sends: { kind: 'file', path, from, size: length },
    });
    const etag = etagOf(response);
    if (response.status !== 200 || !/^[\w+/=-]{1,256}$/.test(etag))
      throw new CryptodlError('http-refused', `part ${number} of ${key} was not stored: ${response.status}`);
    parts.push({ number, etag });
  });
  return parts.sort((one, other) => one.number - other.number);
}

async function complete(
  requests: S3Requests,
  { key, condition }: MultipartPut,
  { uploadId, parts }: { readonly uploadId: string; readonly parts: readonly StoredPart[] },
): Promise<{ readonly status: number; readonly etag: string }> {
  const lines = parts.map(
    ({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>"${etag}"</ETag></Part>`,
  );
  const bytes = Buffer.from(`<CompleteMultipartUpload>${lines.join('')}</CompleteMultipartUpload>`);
  let etag = '';
  const { status } = await requests.send({
    method: 'POST',
    key,
    query: { uploadId },
    headers: condition,
    sends: { kind: 'memory', bytes },
    check: ({ status: answered, body }) => {
      if (answered === 200 && body.kind === 'memory') etag = parseCompleted(body.bytes);
    },
  });
  return { status, etag };
}

// The documents of S3 about multipart uploads.

/** The id of a new multipart upload. Ids of uploads are longer than other labels. */
function parseUploadId(body: Buffer): string {
  const text = neededIn(rootOf(body, 'InitiateMultipartUploadResult'), 'UploadId');
  const isLongLabel = text.length <= 2048 && (text.match(/.{1,256}/gsu) ?? []).every((part) => isLabel(part));
  if (isLongLabel) return text;
  throw malformed('the UploadId is no label');
}

/** The ETag of a completed upload, without its quotes. S3 may send an error document with status 200: it is an error of the server. */
function parseCompleted(body: Buffer): string {
  const error = errorName(body.toString('utf8'));
  if (error !== undefined)
    throw new CryptodlError('http-server-error', `the server answered ${error} with status 200`);
  return (textIn(rootOf(body, 'CompleteMultipartUploadResult'), 'ETag') ?? '').replaceAll('"', '');
}
