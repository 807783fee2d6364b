/** What is to come must fit, in the lake and in the spool. */
import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { CryptodlError } from '../errors.js';
import type { PlanTotals } from '../task.js';
import { bytesText } from '../units.js';
import { makeFolder } from '../make-folder.js';
import { writable } from './open-lake.js';
import type { Session } from './session.js';

/** Parquet is about as large as the zips, CSV a few times larger. */
const CSV_GROWTH = 4;
/** A partition under way is in the spool as zip and as CSV. */
const SPOOL_GROWTH = 8;

/** Rejects with `disk-full`. */
export async function refuseFullDisk(session: Session, totals: PlanTotals): Promise<void> {
  if (totals.fetch === 0) return;
  await writable(session.runFolder, '--temp-dir', () => makeFolder(session.runFolder));
  const lakeBytes = totals.fetchBytes * (session.options.format === 'csv' ? CSV_GROWTH : 1);
  const spoolBytes = Math.min(totals.fetchBytes, totals.largestBytes * availableParallelism()) * SPOOL_GROWTH;
  await refuseFull(session.paths.root, lakeBytes, '--out');
  await refuseFull(session.runFolder, spoolBytes, '--temp-dir');
}

async function refuseFull(folder: string, neededBytes: number, flag: string): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(folder);
  const free = bavail * bsize;
  // Some network file systems do not tell: blocks is 0 there.
  if (blocks === 0 || free >= neededBytes) return;
  throw new CryptodlError(
    'disk-full',
    `${folder} has ${bytesText(free)} free, the plan needs about ${bytesText(neededBytes)}`,
    {
      hint: `make room, or choose another ${flag}`,
    },
  );
}
