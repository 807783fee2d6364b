/** The zips between a worker that fetches and one that converts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StagedZips } from '../../../src/lake/mirror/staged-zips.js';
import type { ZipRecord } from '../../../src/lake/mirror/staged-zips.js';
import { bucketOf, s3Server } from '../../helpers/bucket.js';
import { scratchFolder } from '../../helpers/folders.js';
import type { S3Server } from '../../helpers/s3-server.js';

const OBJECT = { key: 'data/a.zip', etag: '"1"', bytes: 3 };
/** The digest of `abc`. */
const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
const RECORD: ZipRecord = { bytes: 3, sha256: ABC, verified: 'sidecar', etag: '"1"' };

describe('staged zips', () => {
  const scratch = scratchFolder();
  const path = join(scratch, 'a.zip');

  async function open(): Promise<{
    readonly server: S3Server;
    readonly staged: StagedZips;
    readonly again: () => Promise<StagedZips>;
    readonly key: () => string;
  }> {
    const server = await s3Server();
    const { bucket } = bucketOf({ environment: server.environment });
    const again = (): Promise<StagedZips> => StagedZips.open(bucket, 'job');
    const staged = await again();
    const key = (): string => [...server.objects.keys()][0] ?? 'none';
    return { server, staged, again, key };
  }

  it('are there with their record, also for another worker', async () => {
    const { staged, again } = await open();
    expect(await staged.find(OBJECT)).toBeUndefined();
    writeFileSync(path, 'abc');
    await staged.put(OBJECT, RECORD, path);
    writeFileSync(path, '');
    for (const each of [staged, await again()]) {
      expect(await each.find(OBJECT)).toEqual(RECORD);
      expect([await each.take(OBJECT, RECORD, path), readFileSync(path, 'utf8')]).toEqual([true, 'abc']);
    }
  });

  it('are not taken with other bytes, also of the same size', async () => {
    const { server, staged, again, key } = await open();
    writeFileSync(path, 'abc');
    await staged.put(OBJECT, RECORD, path);
    const { metadata } = server.objects.get(key()) ?? {};
    server.store(key(), 'abd', metadata);
    const other = await again();
    expect(await other.find(OBJECT)).toEqual(RECORD);
    expect(await other.take(OBJECT, RECORD, path)).toBe(false);
    server.store(key(), 'abcd', metadata);
    expect(await (await again()).find(OBJECT)).toBeUndefined();
    expect(await (await again()).take(OBJECT, RECORD, path)).toBe(false);
    server.objects.delete(key());
    expect(await (await again()).find(OBJECT)).toBeUndefined();
    expect(await (await again()).take(OBJECT, RECORD, path)).toBe(false);
  });

  it('are not there for another version of the object', async () => {
    const { staged } = await open();
    writeFileSync(path, 'abc');
    await staged.put(OBJECT, RECORD, path);
    for (const change of [{ etag: '"2"' }, { bytes: 4 }, { etag: undefined }])
      expect(await staged.find({ ...OBJECT, ...change })).toBeUndefined();
  });

  it('may be absences', async () => {
    const { staged, again } = await open();
    writeFileSync(path, '');
    await staged.put(OBJECT, { absent: true }, path);
    expect(await staged.find(OBJECT)).toBe('absent');
    expect(await (await again()).find(OBJECT)).toBe('absent');
    expect(await staged.find({ ...OBJECT, etag: '"2"' })).toBeUndefined();
  });

  it.each([
    'text',
    '[]',
    '{}',
    '{"listed":1}',
    ...[
      { bytes: -1 },
      { bytes: '3' },
      { sha256: 'x' },
      { verified: 'rest' },
      { listed: { ...OBJECT, key: 'data/b.zip' } },
    ].map((change) => JSON.stringify({ listed: OBJECT, ...RECORD, ...change })),
  ])('do not count with the record %s', async (record) => {
    const { server, staged, key } = await open();
    writeFileSync(path, 'abc');
    await staged.put(OBJECT, RECORD, path);
    server.store(key(), 'abc', { 'x-amz-meta-note': Buffer.from(record).toString('base64') });
    expect(await staged.find(OBJECT)).toBeUndefined();
  });

  it('are removed one by one or together, and nothing else is', async () => {
    const { server, staged, again, key } = await open();
    const second = { ...OBJECT, key: 'data/b.zip' };
    for (const object of [OBJECT, second]) {
      writeFileSync(path, 'abc');
      await staged.put(object, RECORD, path);
    }
    const folder = key().replace(/[^/]+$/, '');
    server.store(`${folder}notes.txt`, 'mine');
    await staged.remove([OBJECT.key]);
    expect(await staged.find(OBJECT)).toBeUndefined();
    expect(await staged.find(second)).toEqual(RECORD);
    await (await again()).remove();
    expect([...server.objects.keys()]).toEqual([`${folder}notes.txt`]);
  });
});
