/** Compares received zips with held ones, so that no held rows are lost. */
import { CryptodlError } from '../../model/errors.js';
import { grouped } from '../../model/by-name.js';
import { monthOf, monthPeriod, periodText } from '../../model/calendar.js';
import { bringIn } from '../../files/backing.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { fileSize } from '../../files/publish.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { shorterRevision } from './shorter-revisions.js';
import { heldLine, replacedRevision } from './object-lines.js';
import type { ShorterRevision, WriterContext } from './writer.js';
import { pathOf } from './remove-zips.js';

/** Revisions with fewer rows than the held zip, and unreadable revisions of a readable one. Unpacks both zips, because revisions are rare. */
export async function worseZips(
  context: WriterContext,
  held: HeldObjects,
  received: readonly ReceivedObject[],
) {
  const [shorter, unreadable] = [new Array<ShorterRevision>(), new Map<string, CryptodlError>()];
  for (const each of received) {
    const { key } = each.object;
    const line = heldLine(held, each.object);
    if (line === undefined || replacedRevision(held, each) === undefined) continue;
    const keptRows = await heldRows(context, line);
    if (keptRows === undefined) continue;
    const rows = await context.countRows(each.zip, key);
    if (typeof rows !== 'number') {
      unreadable.set(key, rows);
      continue;
    }
    shorter.push(...shorterRevision(line, each, { rows, keptRows }));
  }
  return { shorter, unreadable };
}

/** The rows of a held zip. Undefined if its size is not that of its line, or if it cannot be read. */
async function heldRows(context: WriterContext, line: ObjectLine): Promise<number | undefined> {
  const path = await pathOf(context.paths, line.file);
  const size = await fileSize(path);
  if (size !== line.fileBytes) return undefined;
  await bringIn(path);
  const rows = await context.countRows({ kind: 'file', path, size }, line.key);
  return typeof rows === 'number' ? rows : undefined;
}

/**
 * The held zips whose days other objects take: those of a month for its zip, or the zip of a month for its days. `refused`: objects that would
 * leave out rows of a held zip; an unreadable zip has none.
 */
export async function supersededZips(
  context: WriterContext,
  held: HeldObjects,
  received: readonly ReceivedObject[],
) {
  const superseded: ObjectLine[] = [];
  const refused = new Map<string, CryptodlError>();
  const byMonth = grouped(
    received,
    ({ object }) => `${object.period.cadence} ${monthOf(object.period.from)}`,
  );
  for (const objects of byMonth.values()) {
    const { cadence, from } = objects[0].object.period;
    const lines = held.overlapping(monthPeriod(monthOf(from))).filter((line) => line.cadence !== cadence);
    const keptRows = await sumOf(lines, (line) => heldRows(context, line));
    const rows =
      keptRows === 0 ? 0 : await sumOf(objects, ({ zip, object }) => context.countRows(zip, object.key));
    if (rows >= keptRows) superseded.push(...(keptRows > 0 ? lines : []));
    else
      for (const { object } of objects)
        refused.set(
          object.key,
          new CryptodlError(
            'partition-incomplete',
            `the held zips of ${periodText(monthPeriod(monthOf(from)))} have ${keptRows} rows, and the ${cadence} objects that would replace them ${rows}`,
          ),
        );
  }
  return { superseded, refused };
}

async function sumOf<Item>(
  items: readonly Item[],
  count: (item: Item) => Promise<number | CryptodlError | undefined>,
): Promise<number> {
  let sum = 0;
  for (const item of items) {
    const rows = await count(item);
    if (typeof rows === 'number') sum += rows;
  }
  return sum;
}
