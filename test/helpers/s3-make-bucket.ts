/** Makes a bucket on a server of a test. The program itself never makes one. */
import { AwsV4Signer } from 'aws4fetch';

export async function makeBucket(environment: Readonly<Record<string, string>>, name: string): Promise<void> {
  const { url, headers } = await new AwsV4Signer({
    method: 'PUT',
    url: `${environment['AWS_ENDPOINT_URL_S3']}/${name}`,
    accessKeyId: environment['AWS_ACCESS_KEY_ID'] ?? '',
    secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] ?? '',
    service: 's3',
    region: environment['AWS_REGION'] ?? '',
  }).sign();
  const { status } = await fetch(url, { method: 'PUT', headers });
  if (status !== 200) throw new Error(`the bucket ${name} was not made: ${status}`);
}
