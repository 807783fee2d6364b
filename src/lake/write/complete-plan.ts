/** Completes a plan for a file that exists: which objects must be fetched again, so that its rows stay or are replaced together. */
import { parsePeriod } from '../../model/calendar.js';
import { areDisjoint, heldObject, type ObjectLine } from '../../model/manifest-line.js';
import { checkSettings, differingSettings } from '../settings.js';
import { fileFacts, fileSize } from '../../files/file-facts.js';
import type { PartitionPlan, Task } from '../../model/task.js';
import type { WriterContext } from './writer.js';
import { readExistingFile, fetchedPeriods, overlaps, type ExistingFile } from './existing-file.js';

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
  const left = lines.filter((line) => !found.includes(line));
  return found.length === 0 ? [] : [...found, ...interleaved(found, left)];
}

/** Whether the held rows stay unless REST has more rows. */
const isOptionalReplacement = ({ object, action }: Task): boolean =>
  action.kind === 'fetch' && object.rest?.keepsHeld !== undefined;

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
