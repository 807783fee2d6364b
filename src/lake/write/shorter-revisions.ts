/** Revisions that lack held rows. They are rejected and recorded in the manifest, so that they are not fetched again. */
import { parsePeriod } from '../../model/calendar.js';
import { isFromRest, revisionOf, type ObjectLine } from '../../model/manifest-line.js';
import type { Format } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { HeldObjects } from '../held-objects.js';
import { repeatLine } from '../undone-commits.js';
import type { ShorterRevision, WriterContext } from './writer.js';

/** Whether the line is an earlier revision of the object, or rows of REST of the same period. */
export function isPredecessor(line: ObjectLine, { object }: ReceivedObject): boolean {
  if (!isFromRest(line)) return line.key === object.key;
  return (
    line.cadence === object.period.cadence &&
    parsePeriod(line.cadence, line.period)?.from === object.period.from
  );
}

/** The shorter revision; none if the received object is no new revision of the archive, or is not known to lack held rows. */
export function shorterRevision(
  line: ObjectLine | undefined,
  received: ReceivedObject,
  {
    rows,
    keptRows,
    lackedRows = 0,
  }: Readonly<Partial<Record<'rows' | 'keptRows' | 'lackedRows', number | undefined>>>,
): ShorterRevision[] {
  if (line === undefined || line.open === true || received.verified === 'rest') return [];
  if (line.sha256 === received.sha256 || rows === undefined || keptRows === undefined) return [];
  const isShorter = rows < keptRows || lackedRows > 0;
  return isShorter ? [{ received, heldKey: line.key, rows, keptRows, lackedRows }] : [];
}

/** Records the rejected revisions. Resolves with them by key. Rejects on disk errors, and with `locked` when another run has taken over the lake. */
export async function recordShorterRevisions(
  context: Pick<WriterContext, 'clock' | 'serialize' | 'manifests' | 'lock'>,
  folder: string,
  format: Format,
  shorter: readonly ShorterRevision[],
): Promise<ReadonlyMap<string, ShorterRevision>> {
  const byKey = new Map(shorter.map((each) => [each.received.object.key, each]));
  if (shorter.length === 0) return byKey;
  const at = new Date(context.clock.now()).toISOString();
  await context.serialize(folder, async () => {
    await context.lock?.confirm();
    const { [format]: held } = await context.manifests.of(folder);
    const lines = held.lines();
    const found = shorter.flatMap((each) => {
      const line = lines.find(({ key }) => key === each.heldKey);
      return line === undefined ? [] : [lineWithShorter(held, line, each, at)];
    });
    await context.manifests.append(folder, found);
  });
  return byKey;
}

function lineWithShorter(
  held: HeldObjects,
  before: ObjectLine,
  { received, rows }: ShorterRevision,
  at: string,
): ObjectLine {
  const shorter = { ...revisionOf({ ...received, at }), rows };
  return { ...repeatLine(held, before), shorter };
}
