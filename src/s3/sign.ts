/** A layer that signs each attempt (AWS Signature Version 4), with the SHA-256 of the body. */
import { AwsV4Signer } from 'aws4fetch';
import type { Layer } from '../http/fetch.js';
import type { Clock } from '../model/clock.js';
import type { Credentials, CredentialSource } from './credentials.js';
import type { Secrets } from './secrets.js';

export interface SignOptions {
  readonly credentials: CredentialSource;
  readonly region: () => string;
  readonly secrets: Secrets;
  /** Texts that messages may show. */
  readonly shown: string;
  readonly clock: Pick<Clock, 'now'>;
}

/** The header with the digest of the body. The server refuses a body that arrives changed. */
export const DIGEST_HEADER = 'x-amz-content-sha256';

export function sign({ credentials, region, clock, secrets, shown }: SignOptions): Layer {
  return (next) => async (request, context) => {
    const current = await new Promise<Credentials>((resolve, reject) => {
      // The attempt does not wait for credentials that never come.
      context.expiry?.onOver(reject);
      credentials.current().then(resolve, reject);
    });
    const { accessKeyId, secretAccessKey, sessionToken } = current;
    secrets.add(current, shown);
    const signer = new AwsV4Signer({
      method: request.method ?? 'GET',
      url: request.url,
      headers: { ...request.headers },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      service: 's3',
      region: region(),
      // 20261123T201500Z
      datetime: new Date(clock.now()).toISOString().replaceAll(/[:-]|\.\d{3}/g, ''),
    });
    const { headers } = await signer.sign();
    try {
      return await next({ ...request, headers: Object.fromEntries(headers) }, context);
    } catch (error) {
      throw secrets.hideIn(error);
    }
  };
}
