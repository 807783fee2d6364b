import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { all } from '../helpers/bucket-contract.js';
import { bucketOf } from '../helpers/bucket.js';
import { scratchFolder } from '../helpers/folders.js';
import { startS3Process } from '../helpers/s3-process.js';

const folder = scratchFolder();

it('the S3 server of the tests runs in a process of its own', async () => {
  const server = await startS3Process({ pageSize: 1, delayMs: 1 });
  onTestFinished(() => server.close());
  const { bucket } = bucketOf(server);
  const path = join(folder, 'file');
  writeFileSync(path, 'content');
  for (const key of ['a', 'b']) await bucket.put(key, path, { kind: 'absent' });
  expect((await all(bucket.list(''))).map(({ key }) => key)).toEqual(['a', 'b']);
});
