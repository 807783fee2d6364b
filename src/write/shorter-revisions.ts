/** Revisions that lack held rows. They are rejected and recorded in the manifest, so that they are not fetched again. */
import type { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { repeatLine } from '../lake/undone-commits.js';
import type { Format } from '../model/task.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { ShorterRevision, WriterContext } from './writer.js';

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

/** Records the rejected revisions. Rejects on disk errors, and with `locked` when another run has taken over the lake. */
export async function recordShorterRevisions(
  context: Pick<WriterContext, 'clock' | 'serialize' | 'manifests' | 'lock'>,
  seriesFolder: string,
  format: Format,
  shorter: readonly ShorterRevision[],
): Promise<void> {
  const at = new Date(context.clock.now()).toISOString();
  await context.serialize(seriesFolder, async () => {
    await context.lock?.confirm();
    const { [format]: held } = await context.manifests.of(seriesFolder);
    const lines = held.lines();
    const found = shorter.flatMap((each) => {
      const line = lines.find(({ key }) => key === each.heldKey);
      return line === undefined ? [] : [lineWithShorter(held, line, each, at)];
    });
    await context.manifests.append(seriesFolder, found);
  });
}

function lineWithShorter(
  held: HeldObjects,
  before: ObjectLine,
  { received, rows }: ShorterRevision,
  at: string,
): ObjectLine {
  const { etag, lastModified, zipBytes, sha256 } = received;
  return {
    ...repeatLine(held, before),
    shorter: {
      ...(etag === undefined ? {} : { etag }),
      ...(lastModified === undefined ? {} : { lastModified }),
      bytes: zipBytes,
      sha256,
      rows,
      at,
    },
  };
}
