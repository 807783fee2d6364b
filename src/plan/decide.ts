/** Decides for each object of a partition: fetch, skip or absent, given the content of the lake. */
import { parsePeriod } from '../model/calendar.js';
import type { PlanContext } from './series-request.js';
import type { Absences } from '../lake/absences.js';
import { fileSizes } from '../files/file-facts.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { heldObject, isFromRest, type ObjectLine } from '../model/manifest-line.js';
import type { SourceObject, PartitionPlan, Period, Series, Settings, Task } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import type { Choice } from './choose-objects.js';

export interface DecideContext extends Pick<PlanContext, 'force' | 'revisions' | 'ignoredRefusals'> {
  readonly series: Series;
  readonly settings: Settings;
  readonly held: HeldObjects;
  /** Paths in manifest lines are relative to it: the folder of the series, for zip the root of the lake. */
  readonly folder: string;
  /** Revisions that earlier runs refused; undefined: they are fetched again. */
  readonly refusals?: Absences;
  /** Files that differ from their last commit. */
  readonly broken?: ReadonlySet<string>;
  readonly keyOf: (period: Period) => string;
}

/**
 * The plan of one partition. With `split`, the partition has the day files that replace a month file. With format zip, each object is
 * a file, and the partition is one commit.
 */
export async function decidePartition(
  context: DecideContext,
  label: string,
  choices: readonly Choice[],
  split = false,
): Promise<PartitionPlan> {
  const { series, settings, held } = context;
  const file = `${label}.${settings.format}`;
  const inFile = settings.format === 'zip' ? [] : held.inFile(file);
  const intact = await intactFiles(context, [...choices.flatMap((choice) => choice.held ?? []), ...inFile]);
  const damaged = inFile.some((line) => !intact.has(line.file));
  const why = damaged ? 'damaged' : context.force ? 'forced' : undefined;
  const rebuild = inFile.length === 0 ? undefined : why;
  const tasks = choices.map((choice): Task => {
    const action = decide(context, choice, intact, rebuild !== undefined);
    // A rebuilt file is made from its own objects, without further rows of REST.
    if (action.kind === 'skip' && rebuild === undefined && choice.standIn !== undefined)
      return { series, object: choice.standIn, action: { kind: 'fetch' } };
    const { substitute } = rebuild === undefined && action.kind === 'fetch' ? choice : {};
    const other = substitute === undefined ? {} : { substitute };
    return { series, object: objectOf(context, choice), action, ...other };
  });
  if (rebuild !== undefined) tasks.push(...othersInFile(context, inFile, tasks));
  tasks.sort((a, b) => a.object.period.from - b.object.period.from);
  return {
    series,
    settings,
    label,
    tasks,
    ...(rebuild === undefined ? {} : { rebuild }),
    ...(context.force ? { force: true } : {}),
    ...(split ? { split } : {}),
    ...(choices.some((choice) => choice.isWider === true) ? { isWider: true } : {}),
  };
}

function decide(
  context: DecideContext,
  choice: Choice,
  intact: ReadonlySet<string>,
  rebuild: boolean,
): Task['action'] {
  const { held: line, listed } = choice;
  const isHeld = line !== undefined && intact.has(line.file) && standsFor(context, line, choice);
  if (isHeld && !rebuild && !context.force)
    return choice.isWithdrawn === true && !isFromRest(line)
      ? { kind: 'skip', isWithdrawn: true }
      : { kind: 'skip' };
  const isAsked = rebuild || context.force || context.revisions === 'take';
  const mayWait = !isAsked && (line === undefined || intact.has(line.file));
  const refused = mayWait ? refusalOf(context, listed) : undefined;
  if (refused !== undefined) return { kind: 'skip', refused };
  if (listed !== undefined || line !== undefined) return { kind: 'fetch' };
  return {
    kind: 'absent',
    reason: choice.absent,
    ...(choice.sinceDay === undefined ? {} : { sinceDay: choice.sinceDay }),
    ...(choice.isRestEmpty === true ? { isRestEmpty: true } : {}),
  };
}

/**
 * Whether the held object counts as the chosen one, so that nothing is fetched. When the archive lists the period, rows of REST count
 * only if the listed revision is the one that they substitute, or was refused because it has fewer rows.
 */
function standsFor(context: DecideContext, line: ObjectLine, { period, listed }: Choice): boolean {
  if (isFromRest(line)) {
    if (listed === undefined || listed.rest !== undefined) return line.open !== true;
    const isOfListed = line.insteadOf !== undefined && isSameRevision(context, line.insteadOf, listed);
    return isOfListed || isShorter(context, line, listed);
  }
  // The run that wrote the short month ended before it requested the days.
  if (line.daysPending === true && listed !== undefined) return false;
  return (
    line.key === context.keyOf(period) &&
    (listed === undefined || isSameRevision(context, line, listed) || isShorter(context, line, listed))
  );
}

function othersInFile(context: DecideContext, inFile: readonly ObjectLine[], tasks: readonly Task[]): Task[] {
  const planned = new Set(tasks.map((task) => task.object.key));
  return inFile
    .filter((line) => !planned.has(line.key))
    .flatMap((line) => {
      const period = parsePeriod(line.cadence, line.period);
      if (period === undefined || tasks.some(({ object }) => overlaps(object.period, period))) return [];
      return { series: context.series, object: heldObject(line, period), action: { kind: 'fetch' } as const };
    });
}

const overlaps = (a: Period, b: Period): boolean => a.from < b.to && b.from < a.to;

function objectOf(context: DecideContext, choice: Choice): SourceObject {
  const { held: line, listed, period } = choice;
  // Rows of REST that substitute an object of the archive are requested from REST again.
  if (line?.insteadOf !== undefined && standsFor(context, line, choice)) return heldObject(line, period);
  if (listed !== undefined) {
    const isSized = listed.bytes !== undefined || listed.rest !== undefined;
    return isSized || line === undefined || isFromRest(line) ? listed : { ...listed, heldBytes: line.bytes };
  }
  if (choice.held !== undefined) return heldObject(choice.held, choice.period);
  return { key: choice.key ?? context.keyOf(choice.period), period: choice.period };
}

/**
 * Whether the listed object is the held revision. ETags decide, because the archive sometimes publishes the same bytes again with
 * a new date. Without an ETag on one side, size and date decide. A probed object has none of these and counts as the same revision.
 */
function isSameRevision(
  { revisions }: DecideContext,
  line: Pick<ObjectLine, 'etag' | 'bytes' | 'lastModified'>,
  { etag, bytes, lastModified }: SourceObject,
): boolean {
  if (revisions === 'ignore') return true;
  if (line.etag !== undefined && line.etag !== '' && etag !== undefined && etag !== '')
    return line.etag === etag;
  if (bytes !== undefined && line.bytes !== bytes) return false;
  return isSameMoment(line.lastModified, lastModified);
}

/** Whether an earlier run refused the listed revision because it has fewer rows. */
const isShorter = (context: DecideContext, { shorter }: ObjectLine, listed: SourceObject): boolean =>
  context.revisions !== 'take' && shorter !== undefined && isSameRevision(context, shorter, listed);

/** The failure with which this version of the program refused the listed revision before. */
function refusalOf(
  { settings, refusals, ignoredRefusals }: DecideContext,
  listed: SourceObject | undefined,
): Extract<Task['action'], { kind: 'skip' }>['refused'] {
  const line = listed === undefined ? undefined : refusals?.refusalOf(settings.format, listed);
  if (line === undefined || line.tool !== TOOL_VERSION || ignoredRefusals.has(line.failed)) return undefined;
  return { code: line.failed, at: line.at };
}

/** Compares dates in seconds: the listing has fractions of seconds, HTTP dates have none. */
function isSameMoment(a: string | undefined, b: string | undefined): boolean {
  const [first, second] = [a, b].map((text) => Math.floor(Date.parse(text ?? '') / 1000));
  return first === second || Number.isNaN(first) || Number.isNaN(second);
}

/** Files that exist with the size of their last commit, without those in `broken`. */
async function intactFiles(context: DecideContext, lines: readonly ObjectLine[]): Promise<Set<string>> {
  const files = [...new Set(lines.map((line) => line.file))];
  const sizes = await fileSizes(context.folder, files);
  return new Set(
    files.filter(
      (file, index) =>
        context.broken?.has(file) !== true &&
        sizes[index] !== undefined &&
        sizes[index] === context.held.lastOfFile(file)?.fileBytes,
    ),
  );
}
