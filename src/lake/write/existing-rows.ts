/** The rows of the existing file that a conversion reads. */
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import type { Conversion } from '../../convert/conversion.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { overlaps, type ExistingFile } from './existing-file.js';
import type { WriterContext } from './writer.js';

/** Empty if no row of the file stays or is compared with received ones. */
export function rowsToRead(
  { kept, replaced, path }: ExistingFile,
  received: readonly ReceivedObject[],
  { acceptsShorter }: Pick<WriterContext, 'acceptsShorter'>,
): Pick<Conversion, 'existing'> {
  const compared = comparableLines(replaced, received);
  const isRevised = (line: ObjectLine): boolean =>
    !isFromRest(line) &&
    received.some(({ object, sha256 }) => object.key === line.key && sha256 !== line.sha256);
  const revised = acceptsShorter ? [] : replaced.filter(isRevised);
  const hasMonth = received.some(
    ({ object: { period }, verified }) => period.cadence === 'monthly' && verified !== 'rest',
  );
  const days = hasMonth ? replaced.filter(({ cadence }) => cadence === 'daily') : [];
  const isRead = [kept, compared, revised, days].some((lines) => lines.length > 0);
  return isRead ? { existing: { file: path, kept, replaced, compared, revised, days } } : {};
}

/** Replaced lines whose period was received from the other source (archive or REST). All returned lines have one source. */
function comparableLines(
  replaced: readonly ObjectLine[],
  received: readonly ReceivedObject[],
): readonly ObjectLine[] {
  const crossing = replaced.filter((line) =>
    received.some(
      ({ object, verified }) => (verified === 'rest') !== isFromRest(line) && overlaps(line, object.period),
    ),
  );
  const fromRest = crossing.filter(isFromRest);
  return fromRest.length > 0 ? fromRest : crossing;
}
