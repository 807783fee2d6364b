/** Stores a file as an object: in one request or in parts, under a condition, and with a comparison of the stored size. */
import { stat } from 'node:fs/promises';
import { CryptodlError } from '../model/errors.js';
import { changedElsewhere, holds } from './conditions.js';
import type { BucketObject, Conditions, PutCondition } from './conditions.js';
import { digestsOf } from './digests.js';
import { putParts } from './multipart.js';
import type { MultipartSizes } from './multipart.js';
import { etagOf, SHA256_HEADER } from './requests.js';
import type { S3Requests } from './requests.js';

interface PutAccess {
  readonly requests: S3Requests;
  readonly multipart: MultipartSizes;
  readonly conditions: Conditions;
}

interface PutTarget {
  /** The whole key. */
  readonly key: string;
  /** The address of the object, for messages. */
  readonly name: string;
  readonly head: () => Promise<BucketObject | undefined>;
}

interface PutFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}

interface Stored {
  readonly status: number;
  readonly etag: string;
}

/** A put whose object has a wrong size is repeated once. */
const MOST_PUTS = 2;

/** Rejects with `lake-conflict` if the condition does not hold, and with `length-mismatch` if the stored size stays wrong. */
export async function putObject(
  access: PutAccess,
  target: PutTarget,
  path: string,
  condition: PutCondition | undefined,
): Promise<{ readonly etag: string }> {
  const { size } = await stat(path);
  const { sha256 } = await digestsOf(path, 0, size);
  let current = condition;
  for (let count = 1; ; count += 1) {
    const { etag } = await putOnce(access, target, { path, size, sha256 }, current);
    const there = await target.head();
    const isOurs = there === undefined || there.etag === etag || there.sha256 === sha256;
    // Another object means that another writer has replaced ours since.
    if (!isOurs || there?.bytes === size) return { etag };
    if (count === MOST_PUTS)
      throw new CryptodlError(
        'length-mismatch',
        `${target.name}: ${there?.bytes ?? 'none'} of ${size} bytes are stored, although the server confirmed them`,
      );
    current = condition === undefined || there === undefined ? condition : { kind: 'same', etag: there.etag };
  }
}

async function putOnce(
  access: PutAccess,
  target: PutTarget,
  file: PutFile,
  condition: PutCondition | undefined,
): Promise<{ readonly etag: string }> {
  const headers = condition === undefined ? {} : access.conditions.headers(condition);
  const stored = headers === undefined ? undefined : await store(access, target, file, headers);
  if (stored?.status === 200) return stored;
  if (condition === undefined) throw notStored(target, stored);
  if (stored?.status === 501) access.conditions.giveUp();
  const there = await target.head();
  // The answer to a put may be lost, and its repetition then finds the object of the first.
  if (there?.sha256 === file.sha256 && there.bytes === file.size) return { etag: there.etag };
  // Swift has no conditions for multipart uploads, but says 412.
  const isCompared = stored === undefined || stored.status === 501 || file.size > access.multipart.aboveBytes;
  if (!holds(condition, there) || !isCompared) throw changedElsewhere(target.name, there);
  const again = await store(access, target, file, {});
  if (again.status === 200) return again;
  throw notStored(target, again);
}

async function store(
  { requests, multipart }: PutAccess,
  { key }: PutTarget,
  { path, size, sha256 }: PutFile,
  condition: Readonly<Record<string, string>>,
): Promise<Stored> {
  const metadata = { [SHA256_HEADER]: sha256 };
  if (size > multipart.aboveBytes)
    return putParts(requests, { key, path, size, metadata, condition }, multipart.partBytes);
  const response = await requests.send({
    method: 'PUT',
    key,
    headers: { ...condition, ...metadata },
    sha256,
    sends: size === 0 ? { kind: 'memory', bytes: Buffer.alloc(0) } : { kind: 'file', path, from: 0, size },
  });
  return { status: response.status, etag: etagOf(response) };
}

function notStored({ name }: PutTarget, stored: Stored | undefined): CryptodlError {
  return new CryptodlError(
    'http-refused',
    `${name} was not stored: the server answered ${stored?.status ?? 'nothing'}`,
  );
}
