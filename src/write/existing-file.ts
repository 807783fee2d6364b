/** What the manifest says of the file that a partition plan writes to. */
import { join } from 'node:path';
import { parsePeriod } from '../model/calendar.js';
import { seriesFolder } from '../lake/layout.js';
import { heldObject } from '../lake/manifest.js';
import type { HeldObjects } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { differingSettings, throwSettingsError } from '../lake/settings.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { PartitionPlan, Period, Task } from '../model/task.js';
import type { WriterContext } from './writer.js';

export interface ExistingFile {
  readonly folder: string;
  /** Relative to the folder. */
  readonly file: string;
  readonly path: string;
  /** Objects in the file, in period order. */
  readonly inFile: readonly ObjectLine[];
  /** Those of them that the plan does not replace; none when the file is made anew. */
  readonly kept: readonly ObjectLine[];
  /** Those whose rows are taken out of the file while the others stay in it. */
  readonly replaced: readonly ObjectLine[];
  readonly objects: HeldObjects;
}

/** `arriving`: periods whose rows are to be written; before anything is fetched, those that are wanted. */
export async function readExistingFile(
  context: Pick<WriterContext, 'paths' | 'venue' | 'manifests'>,
  plan: PartitionPlan,
  arriving: readonly Period[] = fetchedPeriods(plan),
): Promise<ExistingFile> {
  const folder = await context.paths.folder(seriesFolder(context.venue.name, plan.series));
  const file = `${plan.label}.${plan.settings.format}`;
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
 * A plan that would add to a file which is not what was committed becomes one that makes the file anew from all its
 * objects. A plan that replaces objects of a sound file also fetches the objects whose rows lie among theirs.
 */
export async function completePlan(
  context: Pick<WriterContext, 'paths' | 'venue' | 'manifests'>,
  plan: PartitionPlan,
): Promise<PartitionPlan> {
  if (plan.rebuild !== undefined) return plan;
  const file = await readExistingFile(context, plan);
  if (plan.force !== true) checkSettings(file, plan);
  if (file.inFile.length === 0) return plan;
  if (plan.force === true) return rebuildPlan(plan, file.inFile, 'forced');
  if (!(await isSound(file))) return rebuildPlan(plan, file.inFile, 'damaged');
  return file.replaced.length === 0 ? plan : addInterleaved(plan, file);
}

/** Rows leave a file by their time: only objects whose rows lie apart from all others are replaced alone. */
function addInterleaved(plan: PartitionPlan, { inFile, kept, replaced }: ExistingFile): PartitionPlan {
  if (replaced.every((line) => kept.every((other) => areDisjoint(line, other)))) return plan;
  // REST's rows for the gaps of an object are worth no fetch of other objects.
  const tasks = plan.tasks.map((task): Task => {
    if (!isOptionalReplacement(task)) return task;
    const own = inFile.filter((line) => overlaps(line, task.object.period));
    const others = inFile.filter((line) => !own.includes(line));
    return interleaved(own, others).length === 0 ? task : { ...task, action: { kind: 'skip' } };
  });
  const periods = fetchedPeriods({ ...plan, tasks });
  const isReplaced = (line: ObjectLine): boolean => periods.some((period) => overlaps(line, period));
  const staying = inFile.filter((line) => !isReplaced(line));
  return { ...plan, tasks: withLines(plan, tasks, interleaved(inFile.filter(isReplaced), staying)) };
}

/** Those of the lines whose rows lie among the rows of the others, directly or through each other. */
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

/** By what the manifest says of first and last rows. */
export function areDisjoint(a: ObjectLine, b: ObjectLine): boolean {
  if (a.first === undefined || a.last === undefined || b.first === undefined || b.last === undefined)
    return false;
  return a.last < b.first || b.last < a.first;
}

/** In place of what is held, if it turns out to be more. */
function isOptionalReplacement({ object, action }: Task): boolean {
  return action.kind === 'fetch' && object.rest?.keepsHeld === true;
}

/** The planner has looked already; a failure report may be older than what the series holds now. */
function checkSettings({ objects, folder }: ExistingFile, plan: PartitionPlan): void {
  const differences = differingSettings(objects.lines(), plan.settings);
  if (differences.length > 0) throwSettingsError(plan.series, folder, differences);
}

/**
 * Size and digest are those of the last commit, and the rows of the objects add up to the file's: a crash within the
 * append of a commit's lines leaves a file that holds more than its manifest says.
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
  // A file that is made anew is made of what it was made of.
  const planned = plan.tasks.filter((task) => !isOptionalReplacement(task));
  const fetched = planned.filter((task) => task.action.kind === 'fetch');
  const others = inFile.filter((line) => !fetched.some(({ object }) => overlaps(line, object.period)));
  return { ...plan, rebuild, tasks: withLines(plan, planned, others) };
}

/** The tasks, with the objects of these lines to be fetched, in period order. */
function withLines({ series }: PartitionPlan, tasks: readonly Task[], lines: readonly ObjectLine[]): Task[] {
  const added = lines.flatMap((line): Task[] => {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined) return [];
    // The listing knows more of an object than its line.
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

/** Lines whose rows would be gone: they are in the file that is replaced, and no received object covers their period. */
export function lostLines(file: ExistingFile, received: readonly Period[]): ObjectLine[] {
  const kept = new Set(file.kept);
  return file.objects.inFile(file.file).filter((line) => !kept.has(line) && !isCovered(line, received));
}

/** Other files whose every live object is covered by what was received: they are superseded as a whole. */
export function supersededFiles(file: ExistingFile, received: readonly Period[]): string[] {
  return overlappedFiles(file, received).filter((name) =>
    file.objects.inFile(name).every((line) => isCovered(line, received)),
  );
}

/** Files of which a part would be held twice. */
export function overlappedFiles(file: ExistingFile, received: readonly Period[]): string[] {
  const lines = received.flatMap((period) => file.objects.overlapping(period));
  return [...new Set(lines.map((line) => line.file))].filter((name) => name !== file.file);
}

function isCovered(line: ObjectLine, received: readonly Period[]): boolean {
  const period = parsePeriod(line.cadence, line.period);
  if (period === undefined) return false;
  for (let day = period.from; day < period.to; day += 1) {
    if (!received.some((candidate) => candidate.from <= day && day < candidate.to)) return false;
  }
  return true;
}

export function overlaps(line: ObjectLine, period: Period): boolean {
  const own = parsePeriod(line.cadence, line.period);
  return own !== undefined && own.from < period.to && period.from < own.to;
}
