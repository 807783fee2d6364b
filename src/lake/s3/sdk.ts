/** The owner of the SDK of AWS, two optional packages: loads them on first use. */
import type { S3 } from '@aws-sdk/client-s3';
import { CryptodlError } from '../../model/errors.js';
import type { S3Keys } from '../../model/lake-address.js';
import { loadOptional } from '../../model/optional-package.js';

export type Sdk = Awaited<ReturnType<typeof loadSdk>>;
export type Client = S3;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Files with one secret often end with a line break. */
function trimmed(text = ''): string | undefined {
  return text.trim() === '' ? undefined : text.trim();
}

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
