/** The manifest lines of a commit. */
import { daysWithin } from '../../model/calendar.js';
import type { ManifestLine, ObjectLine } from '../../model/manifest-line.js';
import type { FileFacts } from '../../files/publish.js';
import { linesOfRemoved } from '../undone-commits.js';
import type { PartitionPlan } from '../../model/task.js';
import { hasDays } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import type { ConversionResult } from '../../convert/conversion.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { ExistingFile } from './existing-file.js';
import type { WriterContext } from './writer.js';
import { droppedLine, replacedRevision, objectLine } from './object-lines.js';

export interface MadeFile {
  readonly staged: string;
  /** Relative to the series' folder. */
  readonly file: string;
  readonly facts: FileFacts;
  readonly result: ConversionResult;
}

export interface Commit {
  readonly existing: ExistingFile;
  readonly made: readonly MadeFile[];
  readonly received: readonly ReceivedObject[];
  /** Files that the new files replace completely. */
  readonly dead: readonly string[];
  /** Lines of objects that the new files no longer contain. */
  readonly lost: readonly ObjectLine[];
}

export function manifestLines(
  context: WriterContext,
  plan: PartitionPlan,
  commitment: Commit,
): ManifestLine[] {
  const at = new Date(context.clock.now()).toISOString();
  const { existing, dead, lost } = commitment;
  const removed = new Set([...dead, ...lost.map(({ file }) => file)]);
  const spec = findDataset(context.exchange, plan.series.market, plan.series.dataset);
  const lines: ManifestLine[] = [
    ...linesOfRemoved(existing.objects, removed, at),
    ...lost.map((line) => droppedLine(line, plan.settings.format, at)),
  ];
  for (const { file, facts, result } of commitment.made) {
    const fileBefore = existing.objects.fileBefore(file);
    for (const received of commitment.received) {
      const written = result.written.get(received.object.key);
      if (written === undefined) continue;
      const { expectedRows: _, ...ofObject } = written;
      const inFile = { file, fileBytes: facts.bytes, fileSha256: facts.sha256, fileRows: result.rows };
      const replaces = replacedRevision(existing.objects, received);
      // Daily objects may have days that the monthly object lacks. A later run then requests these days.
      const mayHaveMoreDays =
        hasDays(spec, plan, received.object) &&
        daysWithin(received.object.period, written.gaps, context.exchange).length > 0;
      lines.push({
        ...objectLine(received, plan, at, context.tool),
        ...(replaces === undefined ? {} : { replaces }),
        ...(mayHaveMoreDays ? { daysPending: true } : {}),
        ...ofObject,
        ...inFile,
        ...(fileBefore === undefined ? {} : { fileBefore }),
      });
    }
  }
  return lines;
}
