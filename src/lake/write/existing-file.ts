/** The existing file that a partition plan writes to, as described by the manifest. */
import { join } from 'node:path';
import { eachDay, parsePeriod } from '../../model/calendar.js';
import { seriesFolder } from '../layout.js';
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { refuseIrregular } from '../../files/path-checks.js';
import type { PartitionPlan, Period } from '../../model/task.js';
import type { WriterContext } from './writer.js';

export interface ExistingFile {
  readonly folder: string;
  /** Name in `folder`. */
  readonly file: string;
  readonly path: string;
  /** Objects in the file, in period order. */
  readonly inFile: readonly ObjectLine[];
  /** Objects whose rows stay in the file; none when the file is rebuilt. */
  readonly kept: readonly ObjectLine[];
  /** Objects whose rows are replaced by the rows to write; none when the file is rebuilt. */
  readonly replaced: readonly ObjectLine[];
  readonly objects: HeldObjects;
}

/** `arriving`: the periods of the rows to write; by default all periods that the plan fetches. */
export async function readExistingFile(
  context: Pick<WriterContext, 'paths' | 'exchange' | 'manifests'>,
  plan: PartitionPlan,
  arriving: readonly Period[] = fetchedPeriods(plan),
): Promise<ExistingFile> {
  const folder = await context.paths.folder(seriesFolder(context.exchange.name, plan.series));
  const file = `${plan.label}.${plan.settings.format}`;
  await refuseIrregular(join(folder, file));
  const objects = (await context.manifests.of(folder))[plan.settings.format];
  const inFile = objects.inFile(file);
  const isReplaced = (line: ObjectLine): boolean => arriving.some((period) => overlaps(line, period));
  const isAdded = plan.rebuild === undefined;
  return {
    folder,
    file,
    path: join(folder, file),
    inFile,
    kept: isAdded ? inFile.filter((line) => !isReplaced(line)) : [],
    replaced: isAdded ? inFile.filter(isReplaced) : [],
    objects,
  };
}

export const fetchedPeriods = (plan: PartitionPlan): Period[] =>
  plan.tasks.filter((task) => task.action.kind === 'fetch').map((task) => task.object.period);

/** Lines whose rows would be lost: their file is replaced, and no received object covers their period. */
export function lostLines(file: ExistingFile, received: readonly Period[]): ObjectLine[] {
  const kept = new Set(file.kept);
  return file.objects.inFile(file.file).filter((line) => !kept.has(line) && !isCovered(line, received));
}

/** Other files whose objects are all covered by the received periods. */
export function supersededFiles(file: ExistingFile, received: readonly Period[]): string[] {
  return overlappedFiles(file, received).filter((name) =>
    file.objects.inFile(name).every((line) => isCovered(line, received)),
  );
}

/** Other files that overlap the received periods. */
export function overlappedFiles(file: ExistingFile, received: readonly Period[]): string[] {
  const lines = received.flatMap((period) => file.objects.overlapping(period));
  return [...new Set(lines.map((line) => line.file))].filter((name) => name !== file.file);
}

function isCovered(line: ObjectLine, received: readonly Period[]): boolean {
  const period = parsePeriod(line.cadence, line.period);
  const isReceived = (day: number): boolean => received.some(({ from, to }) => from <= day && day < to);
  return period !== undefined && eachDay(period).every(isReceived);
}

export function overlaps(line: ObjectLine, period: Period): boolean {
  const held = parsePeriod(line.cadence, line.period);
  return held !== undefined && held.from < period.to && period.from < held.to;
}
