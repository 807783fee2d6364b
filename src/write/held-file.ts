/** What the manifest says of the file that a partition plan writes to. */
import { join } from 'node:path';
import { monthOf, parsePeriod } from '../calendar.js';
import { seriesFolder } from '../lake/layout.js';
import { readManifest } from '../lake/manifest.js';
import type { Held, ObjectLine } from '../lake/manifest.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { PartitionPlan, Period, Task } from '../task.js';
import type { WriterContext } from './writer.js';

export interface HeldFile {
  readonly folder: string;
  /** Relative to the folder. */
  readonly file: string;
  readonly path: string;
  /** Objects in the file, in period order. */
  readonly inFile: readonly ObjectLine[];
  /** Those of them that the plan does not replace; none when the file is made anew. */
  readonly kept: readonly ObjectLine[];
  readonly held: Held;
}

export async function heldFile(
  context: Pick<WriterContext, 'paths' | 'venue'>,
  plan: PartitionPlan,
): Promise<HeldFile> {
  const folder = join(context.paths.root, seriesFolder(context.venue.name, plan.series));
  const file = `${plan.label}.${plan.settings.format}`;
  const held = (await readManifest(folder))[plan.settings.format];
  const inFile = held.inFile(file);
  const fetched = fetchedKeys(plan);
  const kept = plan.rebuild === undefined ? inFile.filter((line) => !fetched.has(line.key)) : [];
  return { folder, file, path: join(folder, file), inFile, kept, held };
}

/**
 * A plan that would add to a file which is not what was committed, or replace objects in it, becomes one that makes
 * the file anew from all its objects.
 */
export async function withRebuild(
  context: Pick<WriterContext, 'paths' | 'venue'>,
  plan: PartitionPlan,
): Promise<PartitionPlan> {
  if (plan.rebuild !== undefined) return plan;
  const file = await heldFile(context, plan);
  if (file.inFile.length === 0) return plan;
  if (!(await isSound(file))) return rebuilt(plan, file.inFile, 'damaged');
  return file.kept.length < file.inFile.length ? rebuilt(plan, file.inFile, 'revised') : plan;
}

/**
 * Size and digest are those of the last commit, and the rows of the objects add up to the file's: a crash within the
 * append of a commit's lines leaves a file that holds more than its manifest says.
 */
async function isSound({ path, file, inFile, held }: HeldFile): Promise<boolean> {
  const committed = held.lastOfFile(file);
  if (committed === undefined || (await fileSize(path)) !== committed.fileBytes) return false;
  const rows = inFile.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  return rows === committed.fileRows && (await fileFacts(path)).sha256 === committed.fileSha256;
}

function rebuilt(
  plan: PartitionPlan,
  inFile: readonly ObjectLine[],
  rebuild: 'damaged' | 'revised',
): PartitionPlan {
  const fetched = fetchedKeys(plan);
  const others = inFile.flatMap((line): Task[] => {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined || fetched.has(line.key)) return [];
    return [{ series: plan.series, object: { key: line.key, period }, action: { kind: 'fetch' } }];
  });
  const isOther = new Set(others.map((task) => task.object.key));
  const tasks = [...plan.tasks.filter((task) => !isOther.has(task.object.key)), ...others];
  return { ...plan, rebuild, tasks: tasks.sort((a, b) => a.object.period.from - b.object.period.from) };
}

function fetchedKeys(plan: PartitionPlan): Set<string> {
  return new Set(plan.tasks.filter((task) => task.action.kind === 'fetch').map((task) => task.object.key));
}

/** Whether a period is held in another file, which may have no live object left once this one is committed. */
export function isHeldElsewhere({ held, file }: HeldFile, period: Period): boolean {
  const month = held.ofMonth(monthOf(period.from));
  if (month !== undefined && month.file !== file) return true;
  for (let day = period.from; day < period.to; day += 1) {
    const line = held.ofDay(day);
    if (line !== undefined && line.file !== file) return true;
  }
  return false;
}
