/** Passes received objects to the writer of their partition, and reports their outcomes. */
import type { CutDays } from './cut-days.js';
import { releaseBodies } from './download-object.js';
import { quarantine } from '../lake/quarantine.js';
import type { CryptodlError } from '../model/errors.js';
import type { WrittenOutcome } from '../model/outcome.js';
import { isBroken } from './months-from-days.js';
import type { MonthsFromDays } from './months-from-days.js';
import type { LakeSession, RunSession, Session } from './session.js';
import type { PartitionPlan, Series } from '../model/task.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { Missing, PartitionWriter, WriteResult } from '../write/writer.js';

interface Recipients {
  readonly writer: PartitionWriter;
  readonly months: MonthsFromDays;
  readonly cutDays: CutDays;
}

/**
 * Writes the objects of a partition, and reports the outcomes of all but the failed ones. Returns the keys of failed objects with their
 * errors, and `held` for keys that the archive no longer has and whose held rows stay.
 */
export async function writeObjects(
  session: RunSession & Pick<LakeSession, 'paths'>,
  { writer, months, cutDays }: Recipients,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  missing: Missing,
): Promise<ReadonlyMap<string, CryptodlError | 'held'>> {
  const result = await writer.write(plan, received, missing);
  const { observer, options, tally } = session;
  tally.files += result.files;
  tally.fileBytes += result.bytes;
  tally.duplicatesAcross += result.duplicatesAcross;
  tally.quarantined += result.quarantined ?? 0;
  tellOverlaps(session, plan, result);
  if (result.files > 0)
    observer.event('partition', {
      ...plan.series,
      partition: plan.label,
      files: result.files,
      bytes: result.bytes,
    });
  for (const object of received) {
    const written = result.written.get(object.object.key);
    const error = result.failed.get(object.object.key);
    if (error !== undefined && isBroken(error))
      await keepEvidence(session, object.object.key, object.zip, error);
    await releaseBodies(object);
    const shorter = result.shorter?.get(object.object.key);
    if (shorter !== undefined) {
      const { rows, keptRows, lackedRows } = shorter;
      await session.tell(plan, object.object, {
        kind: 'partial',
        bytes: object.zipBytes,
        unverified: false,
        rows,
        expectedRows: keptRows,
        keptRows,
        ...(lackedRows === 0 ? {} : { lackedRows }),
      });
      continue;
    }
    if (written === undefined) {
      if (error === undefined) await session.tell(plan, object.object, { kind: 'skipped' });
      continue;
    }
    const { replaces, ...facts } = written;
    tellNewColumns(session, plan.series, facts.newColumns ?? []);
    const { archiveFailed } = object.object.rest ?? {};
    const { rows = 0, idConflicts = 0, expectedRows } = written;
    const isPartial =
      written.gaps !== undefined || (expectedRows !== undefined && (rows < expectedRows || idConflicts > 0));
    const outcome: WrittenOutcome = {
      kind: isPartial ? 'partial' : 'ok',
      bytes: object.zipBytes,
      unverified: object.verified === 'crc' && options.verify !== 'none',
      ...(object.staleSidecar === undefined ? {} : { staleSidecar: true }),
      // `--verify sha256` needs a checksum, and the archive publishes none for this object.
      ...(options.verify === 'sha256' && object.verified === 'etag' && object.staleSidecar === undefined
        ? { noSidecar: true }
        : {}),
      ...(archiveFailed === undefined ? {} : { archiveFailed }),
      ...(replaces === undefined ? {} : { changed: { from: replaces, sha256: object.sha256 } }),
      ...facts,
    };
    const tell = (): Promise<void> => session.tell(plan, object.object, outcome);
    const { gaps } = facts;
    const isDoubtful =
      (isPartial && gaps !== undefined && months.doubt({ plan, object: object.object, gaps, tell })) ||
      (await cutDays.doubt({ plan, object: object.object, outcome }));
    if (!isDoubtful) await tell();
  }
  const refused = new Map<string, CryptodlError | 'held'>(result.failed);
  for (const key of result.stillHeld ?? []) refused.set(key, 'held');
  return refused;
}

/** Warns once of each new column of a dataset. */
function tellNewColumns(
  { tally, observer }: Pick<RunSession, 'observer' | 'tally'>,
  { market, dataset }: Series,
  names: readonly string[],
): void {
  for (const name of names) {
    const column = `${market} ${dataset} has a new column ${name}`;
    if (tally.newColumns.has(column)) continue;
    tally.newColumns.add(column);
    observer.warn(`${column}, which this version does not know: its cells are left out`);
  }
}

/** Reports how the held rows of REST differ from the rows that the archive published later. */
function tellOverlaps(
  { tally, observer }: Pick<RunSession, 'observer' | 'tally'>,
  plan: PartitionPlan,
  { overlaps }: WriteResult,
): void {
  for (const found of overlaps) {
    const { overlap } = tally;
    overlap.compared += found.compared;
    overlap.differing += found.differing;
    overlap.onlyRest += found.onlyRest;
    overlap.onlyArchive += found.onlyArchive;
    if (found.labelsShiftMs !== undefined) overlap.shifted += 1;
    observer.event('overlap', { ...plan.series, partition: plan.label, ...found });
  }
}

/** Keeps a refused body in the quarantine for inspection. */
export async function keepEvidence(
  session: Pick<Session, 'paths' | 'tally'>,
  key: string,
  body: Parameters<typeof quarantine>[2],
  error: CryptodlError,
): Promise<void> {
  await quarantine(session.paths, key, body, `${error.code}: ${error.message}`);
  session.tally.quarantined += 1;
}
