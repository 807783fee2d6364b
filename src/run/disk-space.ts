/** The free space that a plan needs in the lake and in the folder for temporary files. */
import { statfs } from 'node:fs/promises';
import { backingOf } from '../files/backing.js';
import { cores } from '../files/machine.js';
import { makeTempFolder } from '../files/temp-files.js';
import { CryptodlError } from '../model/errors.js';
import type { PlanTotals } from '../model/task.js';
import { bytesText } from '../model/units.js';
import { writable } from './session/open-lake.js';
import type { RunSession } from './session/session.js';

/** Parquet is about as large as the zips, CSV a few times larger. */
const CSV_GROWTH = 4;
/** The folder for temporary files holds the zip and the CSV of each object in flight, together up to this many times the zip. */
const SPOOL_GROWTH = 8;

/** Rejects with `disk-full` if the plan needs more space than is free. */
export async function refuseFullDisk(session: RunSession, totals: PlanTotals): Promise<void> {
  if (totals.fetch === 0) return;
  await writable(session.runFolder, '--temp-dir', () => makeTempFolder(session.runFolder));
  const lakeBytes = totals.fetchBytes * (totals.formats.includes('csv') ? CSV_GROWTH : 1);
  const spoolBytes = Math.min(totals.fetchBytes, totals.largestBytes * cores()) * SPOOL_GROWTH;
  // The files of a mirror become stubs.
  if (backingOf(session.paths.root) === undefined) await refuseFull(session.paths.root, lakeBytes, '--out');
  await refuseFull(session.runFolder, spoolBytes, '--temp-dir');
}

async function refuseFull(folder: string, neededBytes: number, flag: string): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(folder);
  const free = bavail * bsize;
  // Some network file systems do not report their size: blocks is 0 there.
  if (blocks === 0 || free >= neededBytes) return;
  const text = `${folder} has ${bytesText(free)} free, the plan needs about ${bytesText(neededBytes)}`;
  throw new CryptodlError('disk-full', text, { hint: `free some space, or choose another ${flag}` });
}
