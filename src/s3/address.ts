/** The addresses of a lake in a bucket: `s3://bucket/prefix`, and the URLs of its objects. */
import { usage } from '../model/errors.js';

export interface LakeAddress {
  readonly bucket: string;
  /** Ends with a slash; empty for the whole bucket. */
  readonly prefix: string;
  /** `s3://bucket/prefix`, for messages. */
  readonly text: string;
}

const EXAMPLE = 'for example: s3://my-bucket/lake';
/** Swift and older buckets have names that AWS no longer allows. */
const BUCKET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/;
/** S3 allows keys of 1,024 bytes. The keys below the prefix need most of them. */
const LONGEST_PREFIX = 512;

export function isLakeAddress(value: string): boolean {
  return /^s3:/i.test(value);
}

/** Throws a usage error for anything but `s3://bucket` or `s3://bucket/prefix`. The error contains no user name and no password. */
export function parseLakeAddress(value: string, where: string): LakeAddress {
  const [, bucket = '', path = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/is.exec(value) ?? [];
  if (bucket.includes('@'))
    throw usage(
      `${where}: the address of a bucket holds a user name or a password`,
      'give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    );
  if (!BUCKET_NAME.test(bucket) || bucket.includes('..'))
    throw usage(`${where}: "${value}" has no valid name of a bucket`, EXAMPLE);
  const prefix = path.replaceAll(/^\/+|\/+$/g, '');
  if (prefix !== '' && !isPlainKey(prefix))
    throw usage(`${where}: "${value}" has a prefix that cannot be a folder`, EXAMPLE);
  if (Buffer.byteLength(prefix) > LONGEST_PREFIX)
    throw usage(`${where}: the prefix of the bucket is longer than ${LONGEST_PREFIX} bytes`, EXAMPLE);
  const ended = prefix === '' ? '' : `${prefix}/`;
  return { bucket, prefix: ended, text: `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}` };
}

/** Control characters, line separators, backslashes, and characters that are no text. */
const UNUSABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\\\ufffd]/u;

/** Whether a key can be a relative path of a file: no empty segment, no `.` or `..`, no backslash, no control character. */
export function isPlainKey(key: string): boolean {
  return !UNUSABLE.test(key) && key.split('/').every((segment) => !['', '.', '..'].includes(segment));
}

/** The server of a bucket. */
export interface S3Place {
  readonly bucket: string;
  /** The address of a server that has the bucket in the path; undefined for AWS. Without a slash at its end. */
  readonly endpoint: string | undefined;
  readonly region: string;
}

/** The base address of all objects of a bucket, without a slash at its end. */
export function bucketUrl({ bucket, endpoint, region }: S3Place): string {
  if (endpoint !== undefined) return `${endpoint}/${bucket}`;
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The certificate of AWS covers one label before `s3`.
  return bucket.includes('.')
    ? `https://s3.${region}.${domain}/${bucket}`
    : `https://${bucket}.s3.${region}.${domain}`;
}

/** The URL of an object, or of the bucket without a key. */
export function requestUrl(place: S3Place, key: string, query: Readonly<Record<string, string>>): string {
  const path = key.split('/').map(encoded).join('/');
  const words = Object.entries(query).map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return `${bucketUrl(place)}/${path}${words.length === 0 ? '' : `?${words.join('&')}`}`;
}

/** Encodes all characters except those that are unreserved in RFC 3986, as the signature requires. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
