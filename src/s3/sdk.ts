/** The owner of the SDK of AWS, two optional packages: loads them on first use. */
import type { S3Client } from '@aws-sdk/client-s3';
import { CryptodlError, errnoOf } from '../model/errors.js';

export type Sdk = Awaited<ReturnType<typeof loadInstalled>>;
export type Client = S3Client;

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** Rejects with `package-missing`. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return await loadInstalled();
  } catch (error) {
    if (errnoOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new CryptodlError(
      'package-missing',
      'a lake in a bucket needs the packages @aws-sdk/client-s3 and @aws-sdk/lib-storage, which are not installed',
      {
        hint: 'npm install @aws-sdk/client-s3 @aws-sdk/lib-storage (with -g if cryptodl was installed with -g)',
      },
    );
  }
}

async function loadInstalled() {
  const [client, storage] = await Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')]);
  return { ...client, Upload: storage.Upload };
}

/** The status of an error of the SDK; undefined for other errors. */
export function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || error instanceof CryptodlError || !('$metadata' in error))
    return undefined;
  return (error.$metadata as { readonly httpStatusCode?: number }).httpStatusCode;
}
