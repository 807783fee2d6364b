import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LakeBucket } from '../../../src/lake/s3/bucket.js';
import { bucketContract, CONTRACT_PART_BYTES } from '../../helpers/bucket-contract.js';
import { bucketOf, s3Server } from '../../helpers/bucket.js';
import { scratchFolder } from '../../helpers/folders.js';
import type { S3Server } from '../../helpers/s3-server.js';

describe.each([
  ['with conditional writes', {}],
  ['without conditional writes', { conditions: 'refused' }],
  ['with a session token in another region', { sessionToken: 'TOKEN+/=', region: 'eu-central-1' }],
  ['with a bucket name of its own', { bucket: 'Name_1.of-a.bucket' }],
] as const)('a bucket %s', (_, options) => {
  let server: S3Server | undefined;
  const open = async (): Promise<LakeBucket> => {
    server = await s3Server({ pageSize: 10, ...options });
    const { environment, bucket } = server;
    const address = `s3://${bucket}/a folder=1/data`;
    return bucketOf({ environment, address, partBytes: CONTRACT_PART_BYTES }).bucket;
  };
  bucketContract(open, () => server?.uploads.size);
});

const folder = scratchFolder();

describe('a version of an object', () => {
  it.each([
    ['kept', 'is not removed when another one has come', true],
    // The caller has compared the versions before.
    ['refused', 'is removed by a server without the condition', false],
  ] as const)('in a bucket with conditions %s %s', async (conditions, _, isKept) => {
    const { environment } = await s3Server({ conditions });
    const { bucket } = bucketOf({ environment });
    const path = join(folder, 'file');
    writeFileSync(path, 'first');
    const { etag } = await bucket.put('a', path);
    writeFileSync(path, 'second');
    const second = await bucket.put('a', path);
    const removal = bucket.remove('a', etag);
    if (isKept) await expect(removal).rejects.toMatchObject({ code: 'lake-conflict' });
    else await removal;
    expect((await bucket.head('a'))?.etag).toBe(isKept ? second.etag : undefined);
    await bucket.remove('a', second.etag);
    expect(await bucket.head('a')).toBeUndefined();
  });
});

it('an object above the limit of its caller is named', async () => {
  const server = await s3Server();
  const { bucket } = bucketOf({ environment: server.environment });
  server.store('data/a', 'x'.repeat(2000));
  const path = join(folder, 'large');
  await expect(bucket.get('a', path, { maxBytes: 1000 })).rejects.toThrow(
    /^s3:\/\/lake\/data\/a: .* sent more than 1000 bytes$/,
  );
  expect((await bucket.get('a', path, { maxBytes: 2000 }))?.bytes).toBe(2000);
});

describe.each([
  ['AWS_REGION', 'eu-west-1\nX-Header: secret'],
  ['AWS_ENDPOINT_URL_S3', 'http://127.0.0.1:1\nsecret'],
  ['AWS_REGION', 'eu west secret'],
])('%s with a wrong value %j', (name, value) => {
  it('is refused with its name', async () => {
    const server = await s3Server();
    const open = (given: string): unknown =>
      bucketOf({ environment: { ...server.environment, [name]: given } });
    expect(() => open(value)).toThrow(name);
    if (value.includes('\n')) expect(() => open(value)).not.toThrow(/secret/);
    // A blank or a line break at the end is no part of the value.
    expect(() => open(`${server.environment[name] ?? ''}\n`)).not.toThrow();
  });
});
