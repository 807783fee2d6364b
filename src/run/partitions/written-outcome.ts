/** The outcome of an object that the writer has written, and what a written file tells beside it. */
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { ShorterRevision, WriteResult, WrittenObject } from '../../lake/write/writer.js';
import type { WrittenOutcome } from '../../model/outcome.js';
import type { PartitionPlan, Series } from '../../model/task.js';
import type { RunSession } from '../session/session.js';

/** `partial`: the period must have more rows, or has rows of the same id or bar with other values. */
export function writtenOutcome(
  { object, zipBytes, verified, staleSidecar, sha256 }: ReceivedObject,
  written: WrittenObject,
  { verify }: Pick<RunSession['options'], 'verify'>,
): WrittenOutcome {
  const { replaces, ...facts } = written;
  const { archiveFailed } = object.rest ?? {};
  const { rows = 0, idConflicts = 0, expectedRows, gaps } = written;
  const isPartial =
    gaps !== undefined || (expectedRows !== undefined && (rows < expectedRows || idConflicts > 0));
  // `--verify sha256` needs a checksum, and the archive publishes none for this object.
  const lacksSidecar = verify === 'sha256' && verified === 'etag' && staleSidecar === undefined;
  return {
    kind: isPartial ? 'partial' : 'ok',
    bytes: zipBytes,
    unverified: verified === 'crc' && verify !== 'none',
    ...(staleSidecar === undefined ? {} : { staleSidecar: true }),
    ...(lacksSidecar ? { noSidecar: true } : {}),
    ...(archiveFailed === undefined ? {} : { archiveFailed }),
    ...(replaces === undefined ? {} : { changed: { from: replaces, sha256 } }),
    ...facts,
  };
}

/** Of a revision that lacks held rows, which stay. */
export function shorterOutcome(
  { zipBytes: bytes }: ReceivedObject,
  { rows, keptRows, lackedRows }: ShorterRevision,
): WrittenOutcome {
  const lacked = lackedRows === 0 ? {} : { lackedRows };
  return { kind: 'partial', bytes, unverified: false, rows, expectedRows: keptRows, keptRows, ...lacked };
}

/** Counts and reports the files of a write, and how the held rows of REST differ from the rows that the archive published later. */
export function tellFile({ observer, tally }: RunSession, plan: PartitionPlan, result: WriteResult): void {
  const { files, bytes } = result;
  tally.add('files', files);
  tally.add('fileBytes', bytes);
  tally.add('duplicatesKept', result.duplicatesAcross);
  tally.add('quarantined', result.quarantined ?? 0);
  for (const found of result.overlaps) {
    for (const name of ['compared', 'differing', 'onlyRest', 'onlyArchive'] as const)
      tally.add(`overlap.${name}`, found[name]);
    if (found.labelsShiftMs !== undefined) tally.add('overlap.shifted');
    observer.event('overlap', { ...plan.series, partition: plan.label, ...found });
  }
  if (files > 0) observer.event('partition', { ...plan.series, partition: plan.label, files, bytes });
}

/** Warns of each new column once. */
export function tellNewColumns(
  { tally, observer }: RunSession,
  { market, dataset }: Series,
  { newColumns = [] }: WrittenObject,
): void {
  for (const name of newColumns) {
    const column = `${market} ${dataset} has a new column ${name}`;
    if (tally.newColumns.has(column)) continue;
    tally.newColumns.add(column);
    observer.warn(`${column}, which this version does not know: its cells are left out`);
  }
}
