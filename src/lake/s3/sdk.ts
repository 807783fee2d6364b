/** The owner of the SDK of AWS, two optional packages: loads them on first use. Its requests become requests of the layers. */
import type { S3 } from '@aws-sdk/client-s3';
import { CryptodlError } from '../../model/errors.js';
import type { S3Keys } from '../../model/lake-address.js';
import { loadOptional } from '../../files/optional-package.js';
import type { FetchRequest, FetchResponse } from '../../model/fetch.js';

export type Sdk = Awaited<ReturnType<typeof loadSdk>>;
export type Client = S3;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Files with one secret often end with a line break. */
const trimmed = (text = ''): string | undefined => (text.trim() === '' ? undefined : text.trim());

/** Undefined without both keys. */
export function ofEnvironment(environment: Environment): S3Keys | undefined {
  const accessKeyId = trimmed(environment['AWS_ACCESS_KEY_ID']);
  const secretAccessKey = trimmed(environment['AWS_SECRET_ACCESS_KEY']);
  const sessionToken = trimmed(environment['AWS_SESSION_TOKEN']);
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

/** Rejects with `package-missing`. */
export function loadSdk() {
  return loadOptional('a lake in a bucket', ['@aws-sdk/client-s3', '@aws-sdk/lib-storage'], async () => {
    const [client, { Upload }] = await Promise.all([
      import('@aws-sdk/client-s3'),
      import('@aws-sdk/lib-storage'),
    ]);
    return { ...client, Upload };
  });
}

/** The status of an error of the SDK, 0 without one; undefined for other errors. */
export function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || error instanceof CryptodlError || !('$metadata' in error))
    return undefined;
  return (error.$metadata as { readonly httpStatusCode?: number }).httpStatusCode ?? 0;
}

export interface SdkRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  /** Percent-encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

/** What a caller gives to a request besides the command of the SDK. */
export interface Transfer {
  /** An option that the SDK knows. */
  readonly requestTimeout?: number;
  readonly spoolPath?: string;
  readonly maxBytes?: number;
  /** Throws an error for a wrong answer. The request is then sent again if the error is retryable. */
  readonly check?: (answer: FetchResponse) => void;
  readonly onAnswer?: (answer: FetchResponse) => void;
}

export const BUCKET = 's3';

/** Bodies of answers other than objects: pages of a listing, and errors. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

export function fetchRequestOf(request: SdkRequest, { spoolPath, maxBytes }: Transfer): FetchRequest {
  const { method, protocol, hostname, port, path, query = {}, headers, body } = request;
  const words = Object.entries(query).map(
    ([name, value]) => `${encoded(name)}=${encoded(String(value ?? ''))}`,
  );
  const host = port === undefined ? hostname : `${hostname}:${port}`;
  const most = maxBytes ?? (spoolPath === undefined ? ANSWER_MAX_BYTES : Number.MAX_SAFE_INTEGER);
  return {
    url: `${protocol}//${host}${path}${words.length === 0 ? '' : `?${words.join('&')}`}`,
    method: method as NonNullable<FetchRequest['method']>,
    bucket: BUCKET,
    headers,
    ...(body === undefined ? {} : { sends: Buffer.from(body as Uint8Array) }),
    ...(spoolPath === undefined ? { spoolAboveBytes: most } : { spoolPath }),
    maxBytes: most,
  };
}

/** Encodes all characters except those that are unreserved in RFC 3986, as the signature requires. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
