import { describe } from 'vitest';
import { bucketContract, CONTRACT_SIZES } from '../helpers/bucket-contract.js';
import { bucketOf, s3Server } from '../helpers/bucket.js';

describe.each([
  ['with conditional writes', {}],
  ['without conditional writes', { conditions: 'refused' }],
  ['with a session token in another region', { sessionToken: 'TOKEN+/=', region: 'eu-central-1' }],
  ['with a bucket name of its own', { bucket: 'Name_1.of-a.bucket' }],
] as const)('a bucket %s', (_, options) => {
  bucketContract(async () => {
    const server = await s3Server({ pageSize: 10, ...options });
    const { environment, bucket } = server;
    const address = `s3://${bucket}/a folder=1/data`;
    return bucketOf({ environment, address, multipart: CONTRACT_SIZES }).bucket;
  });
});
