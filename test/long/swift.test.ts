/** A bucket of the program on OpenStack Swift, a real S3 server without conditional writes. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { all, bucketContract, CONTRACT_SIZES } from '../helpers/bucket-contract.js';
import { bucketOf } from '../helpers/bucket.js';
import { refusal } from '../helpers/requests.js';
import { makeBucket } from '../helpers/s3-make-bucket.js';
import { HAS_SWIFT, NEEDS_SWIFT, START_MS, startSwift } from '../helpers/swift.js';
import type { SwiftServer } from '../helpers/swift.js';

describe.skipIf(!HAS_SWIFT)(`a bucket on Swift${NEEDS_SWIFT}`, () => {
  let swift: SwiftServer | undefined;

  beforeAll(async () => {
    swift = await startSwift();
    await makeBucket(swift.environment, 'lake');
  }, START_MS);

  afterAll(() => swift?.close());

  const environment = (): Readonly<Record<string, string>> => swift?.environment ?? {};

  bucketContract(
    () =>
      bucketOf({
        environment: environment(),
        address: `s3://lake/${randomUUID()}/data`,
        multipart: CONTRACT_SIZES,
      }).bucket,
  );

  it.each([
    ['a wrong secret key', { AWS_SECRET_ACCESS_KEY: 'wrong' }, 'SignatureDoesNotMatch'],
    // Swift does not tell an unknown key from a wrong secret key.
    ['an unknown key', { AWS_ACCESS_KEY_ID: 'test:nobody' }, 'SignatureDoesNotMatch'],
    ['another region', { AWS_REGION: 'eu-west-1' }, ''],
  ])('%s', async (_, changed, name) => {
    const { bucket, warnings } = bucketOf({ environment: { ...environment(), ...changed } });
    if (name === '') {
      await all(bucket.list(''));
      expect(warnings).toHaveLength(1);
    } else expect((await refusal(all(bucket.list('')))).message).toContain(name);
  });

  it('a bucket that is not there', async () => {
    const { bucket } = bucketOf({ environment: environment(), address: 's3://another/data' });
    expect((await refusal(all(bucket.list('')))).message).toContain('NoSuchBucket');
  });
});
