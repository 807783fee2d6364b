/** The existing file that a partition plan writes to, as described by the manifest. */
import { join } from 'node:path';
import { eachDay, parsePeriod } from '../../model/calendar.js';
import { seriesFolder } from '../layout.js';
import type { HeldObjects } from '../held-objects.js';
import { areDisjoint, heldObject } from '../../model/manifest-line.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { checkSettings, differingSettings } from '../settings.js';
import { refuseIrregular } from '../../files/path-checks.js';
import { fileFacts, fileSize } from '../../files/publish.js';
import type { PartitionPlan, Period, Task } from '../../model/task.js';
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

/**
 * The plan with all objects that must be fetched for its file. With `force`, or if the file differs from its last commit, it is
 * rebuilt from all its objects; with `force` once in a run. If objects of an intact file are replaced, the objects with interleaved rows are replaced too.
 * Without `force`, rejects with `usage` if the settings differ from those of the series.
 */
export async function completePlan(
  context: Pick<WriterContext, 'paths' | 'exchange' | 'manifests'>,
  plan: PartitionPlan,
): Promise<PartitionPlan> {
  if (plan.rebuild !== undefined) return plan;
  const file = await readExistingFile(context, plan);
  const { settings, series } = plan;
  // Repeats the check of the planner: a failure report may have two settings for a new series, and plans precede the first commit.
  if (plan.force !== true) checkSettings(series, file.folder, { held: file.objects, requested: settings });
  if (file.inFile.length === 0)
    return (await fileSize(file.path)) === undefined ? plan : { ...plan, isUnlisted: true };
  if (plan.force === true && plan.isWritten !== true) return rebuildPlan(plan, file.inFile, 'forced');
  if (!(await isSound(file))) return rebuildPlan(plan, file.inFile, 'damaged');
  if (mustBeRewritten(file, plan)) return rebuildPlan(plan, file.inFile, 'forced');
  return file.replaced.length === 0 ? plan : addInterleaved(plan, file);
}

/** Rows are removed by time range, so an object can be replaced alone only if its range overlaps no other. */
function addInterleaved(plan: PartitionPlan, { inFile, kept, replaced }: ExistingFile): PartitionPlan {
  if (replaced.every((line) => kept.every((other) => areDisjoint(line, other)))) return plan;
  // Rows from REST that may only fill gaps are not worth a new fetch of other objects.
  const tasks = plan.tasks.map((task): Task => {
    if (!isOptionalReplacement(task)) return task;
    const held = inFile.filter((line) => overlaps(line, task.object.period));
    const others = inFile.filter((line) => !held.includes(line));
    return interleaved(held, others).length === 0 ? task : { ...task, action: { kind: 'skip' } };
  });
  const periods = fetchedPeriods({ ...plan, tasks });
  const isReplaced = (line: ObjectLine): boolean => periods.some((period) => overlaps(line, period));
  const staying = inFile.filter((line) => !isReplaced(line));
  return { ...plan, tasks: withLines(plan, tasks, interleaved(inFile.filter(isReplaced), staying)) };
}

/** The lines whose time ranges overlap those of `others`, directly or in a chain of overlapping lines. */
function interleaved(others: readonly ObjectLine[], lines: readonly ObjectLine[]): ObjectLine[] {
  const found = lines.filter((line) => others.some((other) => !areDisjoint(line, other)));
  if (found.length === 0) return [];
  return [
    ...found,
    ...interleaved(
      found,
      lines.filter((line) => !found.includes(line)),
    ),
  ];
}

/** Whether the held rows stay unless REST has more rows. */
function isOptionalReplacement({ object, action }: Task): boolean {
  return action.kind === 'fetch' && object.rest?.keepsHeld !== undefined;
}

/** Whether no row of an intact file can stay: its days get files of their own, or its rows have other settings. */
function mustBeRewritten({ inFile }: ExistingFile, { settings, split }: PartitionPlan): boolean {
  if (split === true) return true;
  // The choice of objects does not change rows.
  const { partition, cadence } = settings;
  const held = inFile.map((line) => ({ ...line.settings, partition, cadence }));
  return differingSettings(held, settings).length > 0;
}

/**
 * Whether size and digest match the last commit, and the row counts of the objects add up to that of the file. After a crash
 * during the append to the manifest, the file has more rows than the manifest lists.
 */
async function isSound({ path, file, inFile, objects }: ExistingFile): Promise<boolean> {
  const committed = objects.lastOfFile(file);
  if (committed === undefined || (await fileSize(path)) !== committed.fileBytes) return false;
  const rows = inFile.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  return rows === committed.fileRows && (await fileFacts(path)).sha256 === committed.fileSha256;
}

function rebuildPlan(
  plan: PartitionPlan,
  inFile: readonly ObjectLine[],
  rebuild: 'damaged' | 'forced',
): PartitionPlan {
  // A rebuilt file contains the same objects as before.
  const planned = plan.tasks.filter((task) => !isOptionalReplacement(task));
  const fetched = planned.filter((task) => task.action.kind === 'fetch');
  const others = inFile.filter((line) => !fetched.some(({ object }) => overlaps(line, object.period)));
  return { ...plan, rebuild, tasks: withLines(plan, planned, others) };
}

function withLines({ series }: PartitionPlan, tasks: readonly Task[], lines: readonly ObjectLine[]): Task[] {
  const added = lines.flatMap((line): Task[] => {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined) return [];
    // The listing has more facts about an object than its line.
    const listed = tasks.find(({ object }) => object.key === line.key && object.rest === undefined);
    return [{ series, object: listed?.object ?? heldObject(line, period), action: { kind: 'fetch' } }];
  });
  const isAdded = new Set(added.map((task) => task.object.key));
  const all = [...tasks.filter((task) => !isAdded.has(task.object.key)), ...added];
  return all.sort((a, b) => a.object.period.from - b.object.period.from);
}

function fetchedPeriods(plan: PartitionPlan): Period[] {
  return plan.tasks.filter((task) => task.action.kind === 'fetch').map((task) => task.object.period);
}

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
