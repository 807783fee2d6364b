/** The two parts of a job that one worker fetches and another converts: both are runs whose zips pass through the bucket of the lake. */
import { writeFile, rm } from 'node:fs/promises';
import type { StagedZips, ZipRecord } from '../../lake/mirror/staged-zips.js';
import { CryptodlError } from '../../model/errors.js';
import type { ReceivedZip, ZipStore } from '../../run/session/session.js';
import type { JobData } from './job-data.js';

/** Whether the rows of a job come from zips alone. Rows of REST are not staged, and zips that stay zips are not converted. */
export function isConverted({ verb, options }: JobData): boolean {
  const { fill, join, format } = options;
  return verb === 'vision' && fill === undefined && join === undefined && format?.[0] !== 'zip';
}

const NONE: ReceivedZip['zip'] = { kind: 'memory', bytes: Buffer.alloc(0) };

/** The run requests the zips that are not staged yet, and stages them one by one. */
export const fetching = (staged: StagedZips): ZipStore => ({
  isLast: true,
  zipOf: async (object, path, request) => {
    const known = await staged.find(object);
    if (known === 'absent') return undefined;
    if (known !== undefined) return receivedZip(known, NONE);
    const received = await request();
    const zip = received?.zip ?? NONE;
    try {
      if (zip.kind === 'memory') await writeFile(path, zip.bytes);
      await staged.put(object, received === undefined ? { absent: true } : recordOf(received), path);
    } finally {
      await rm(path, { force: true });
    }
    return received && { ...received, zip: NONE };
  },
});

/** The run takes each zip from the bucket, and none from the archive. `failed`: the objects that could not be fetched. */
export const converting = (staged: StagedZips, failed: ReadonlyMap<string, CryptodlError>): ZipStore => ({
  isLast: false,
  zipOf: async (object, path) => {
    const failure = failed.get(object.key);
    if (failure !== undefined) throw failure;
    const record = await staged.find(object);
    if (record === 'absent') return undefined;
    if (record === undefined || !(await staged.take(object, record, path)))
      throw new CryptodlError(
        'staged-zip-lost',
        `${object.key}: the fetched zip is not in the bucket any more, or has other bytes`,
        { hint: 'a worker fetches it again: cryptodl retry --redis URL' },
      );
    return receivedZip(record, { kind: 'file', path, size: record.bytes });
  },
});

function recordOf(received: ReceivedZip): ZipRecord {
  const { zip: _, zipBytes: bytes, verified, ...facts } = received;
  if (verified === 'rest' || verified === 'lake') throw new CryptodlError('bug', 'rows of REST have no zip');
  return { ...facts, verified, bytes };
}

function receivedZip({ bytes, ...facts }: ZipRecord, zip: ReceivedZip['zip']): ReceivedZip {
  return { ...facts, zip, zipBytes: bytes };
}
