/** Puts a small file into a bucket, tries to replace it against its condition, and removes it. */
import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import type { BackingTrial } from '../lake/backing.js';
import { FOLDERS } from '../lake/layout.js';
import type { Clock } from '../model/clock.js';
import type { Bucket } from '../s3/bucket.js';
import { isConflict } from './publisher.js';

/** `staged`: a free path. Rejects with the error of the bucket. The object is removed in any case. */
export async function tryBucket(
  bucket: Bucket,
  clock: Pick<Clock, 'monotonic'>,
  staged: string,
): Promise<BackingTrial> {
  const key = `${FOLDERS.internal}/trial-${randomUUID()}`;
  try {
    await writeFile(staged, 'first');
    const begunAt = clock.monotonic();
    await bucket.put(key, staged, { kind: 'absent' });
    const putMs = clock.monotonic() - begunAt;
    await writeFile(staged, 'second');
    const keepsConditions = await bucket.put(key, staged, { kind: 'absent' }).then(
      () => false,
      (error: unknown) => {
        if (isConflict(error)) return true;
        throw error;
      },
    );
    return { putMs, keepsConditions, isAtomic: keepsConditions && bucket.hasConditions };
  } finally {
    await rm(staged, { force: true });
    await bucket.remove(key).catch(() => undefined);
  }
}
