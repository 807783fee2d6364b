/** The addresses of lakes in buckets, `s3://bucket/prefix`, and the keys below them. */
import { usage } from './errors.js';

export interface LakeAddress {
  readonly bucket: string;
  /** Ends with a slash; empty for the whole bucket. */
  readonly prefix: string;
  /** `s3://bucket/prefix`, for messages. */
  readonly text: string;
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const OTHER_HINT =
  'write the path of a folder, or s3://BUCKET/PREFIX with --s3-endpoint for a server that is not AWS';
const EXAMPLE = 'for example: s3://my-bucket/lake';
/** Swift and older buckets have names that AWS no longer allows. */
const BUCKET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/;
/** S3 allows keys of 1,024 bytes. The keys below the prefix need most of them. */
const LONGEST_PREFIX = 512;

export const isLakeAddress = (value: string): boolean => /^s3:/i.test(value);

/** A folder stays as it is, an address of a bucket gets its usual form. Throws a usage error for other addresses. */
export function parseLake(value: string, where: string): string {
  if (isLakeAddress(value)) return parseLakeAddress(value, where).text;
  // The rest may hold a password.
  const [scheme] = SCHEME.exec(value) ?? [];
  if (scheme !== undefined) throw usage(`${where}: a lake cannot be at a ${scheme} address`, OTHER_HINT);
  return value;
}

/** Throws a usage error for anything but `s3://bucket` or `s3://bucket/prefix`. The error contains no user name and no password. */
export function parseLakeAddress(value: string, where: string): LakeAddress {
  const [, bucket = '', path = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/is.exec(value) ?? [];
  if (bucket.includes('@'))
    throw usage(
      `${where}: the address of a bucket holds a user name or a password`,
      'give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  const prefix = path.replaceAll(/^\/+|(?<!\/)\/+$/g, '');
  const isFolder = prefix === '' || (isPlainKey(prefix) && Buffer.byteLength(prefix) <= LONGEST_PREFIX);
  if (!BUCKET_NAME.test(bucket) || bucket.includes('..') || !isFolder)
    throw usage(`${where}: "${value}" is not the address of a bucket, or of a folder in one`, EXAMPLE);
  const ended = prefix === '' ? '' : `${prefix}/`;
  return { bucket, prefix: ended, text: `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}` };
}

/** Control characters, line separators, backslashes, and characters that are no text. */
const UNUSABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\\\ufffd]/u;

/** Whether a key can be a relative path of a file: no empty segment, no `.` or `..`, no backslash, no control character. */
export const isPlainKey = (key: string): boolean =>
  !UNUSABLE.test(key) && key.split('/').every((segment) => !['', '.', '..'].includes(segment));

/** Credentials in the form that the packages of AWS use. */
export interface S3Keys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** A function is called again before the credentials expire. */
export type S3Credentials = S3Keys | (() => Promise<S3Keys>);
