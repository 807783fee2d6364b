/**
 * The existing file that a partition plan writes to, as described by the manifest, and the guards of a write: they prevent that held rows are lost, or
 * that rows are stored twice.
 */
import { join } from 'node:path';
import { dayPeriod, eachDay, parsePeriod } from '../../model/calendar.js';
import { CryptodlError } from '../../model/errors.js';
import { seriesFolder } from '../layout.js';
import type { HeldObjects } from '../held-objects.js';
import { areDisjoint, type ObjectLine } from '../../model/manifest-line.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { refuseIrregular } from '../../files/path-checks.js';
import type { PartitionPlan, Period } from '../../model/task.js';
import { failAll, type Missing, type WriteResult, type WriterContext } from './writer.js';

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
function lostLines(file: ExistingFile, received: readonly Period[]): ObjectLine[] {
  const kept = new Set(file.kept);
  return file.objects.inFile(file.file).filter((line) => !kept.has(line) && !isCovered(line, received));
}

/** Other files whose objects are all covered by the received periods. */
function supersededFiles(file: ExistingFile, received: readonly Period[]): string[] {
  return overlappedFiles(file, received).filter((name) =>
    file.objects.inFile(name).every((line) => isCovered(line, received)),
  );
}

/** Other files that overlap the received periods. */
function overlappedFiles(file: ExistingFile, received: readonly Period[]): string[] {
  const lines = received.flatMap((period) => file.objects.overlapping(period));
  return [...new Set(lines.map((line) => line.file))].filter((name) => name !== file.file);
}

function isCovered(line: ObjectLine, received: readonly Period[]): boolean {
  const period = parsePeriod(line.cadence, line.period);
  const isReceived = (day: number): boolean => received.some(({ from, to }) => from <= day && day < to);
  return period !== undefined && eachDay(period).every(isReceived);
}

/** Whether a held object and a period have a day in common. */
export function overlaps(line: ObjectLine, period: Period): boolean {
  const held = parsePeriod(line.cadence, line.period);
  return held !== undefined && held.from < period.to && period.from < held.to;
}

export interface PlannedWrite {
  readonly plan: PartitionPlan;
  readonly existing: ExistingFile;
  readonly received: readonly ReceivedObject[];
  readonly missing: Missing;
}

/** The same write after some objects have failed. */
export function without(write: PlannedWrite, failed: ReadonlyMap<string, CryptodlError>): PlannedWrite {
  return {
    ...write,
    received: write.received.filter(({ object }) => !failed.has(object.key)),
    missing: new Map([...write.missing, ...failed]),
  };
}

/** The keys of objects that the archive or REST no longer has, but whose rows are in the file. */
export function stillHeld({ existing, missing }: PlannedWrite): ReadonlySet<string> {
  const keys = existing.inFile.map(({ key }) => key);
  return new Set(keys.filter((key) => missing.get(key) === 'absent'));
}

/** The held lines that a received object replaces. */
export function replacedBy({ existing, received }: PlannedWrite, key: string): readonly ObjectLine[] {
  const ofKey = received.filter(({ object }) => object.key === key);
  return existing.replaced.filter((line) => ofKey.some(({ object }) => overlaps(line, object.period)));
}

/** Files and objects that the write removes from the lake. */
export function superseded({ plan, existing, received }: PlannedWrite): {
  dead: string[];
  lost: ObjectLine[];
} {
  const periods = [...received.map(({ object }) => object.period), ...(plan.emptyDays ?? []).map(dayPeriod)];
  const dead = supersededFiles(existing, periods);
  return {
    dead: plan.split === true ? [...dead, existing.file] : dead,
    lost: lostLines(existing, periods),
  };
}

/** The result of a refused write, if an intact file would lose rows or rows would be stored twice; else undefined. */
export function refusal(write: PlannedWrite): WriteResult | undefined {
  const { plan, existing, received, missing } = write;
  const { dead, lost } = superseded(write);
  const refused = (error: CryptodlError): WriteResult => ({
    ...failAll(received, error),
    stillHeld: stillHeld(write),
  });
  // A zip that is fetched for this job again comes with its next attempt, which may also find the file sound.
  const mayCome = [...missing.values()].some((why) => why !== 'absent' && why.code === 'staged-zip-lost');
  if (lost.length > 0 && (plan.rebuild !== 'damaged' || mayCome))
    return refused(incompleteError(lost, missing));
  const periods = received.map(({ object }) => object.period);
  const doubled = overlappedFiles(existing, periods).filter((file) => !dead.includes(file));
  if (doubled.length === 0) return undefined;
  const text = `${doubled.join(', ')} also contains other days, so single days of it cannot be written to another file`;
  const hint = 'download the whole range with cryptodl vision --force';
  return refused(new CryptodlError('partition-incomplete', text, { hint }));
}

/** Errors, by key, of received objects that cannot replace their held rows, because rows that stay are interleaved with these rows. */
export function interleavedRevisions({
  existing,
  received,
  missing,
}: PlannedWrite): Map<string, CryptodlError> {
  const rejected = new Map<string, CryptodlError>();
  for (const { object } of received) {
    const held = existing.replaced.filter((line) => overlaps(line, object.period));
    const others = existing.kept.filter((line) => held.some((each) => !areDisjoint(line, each)));
    if (others.length > 0) rejected.set(object.key, incompleteError(others, missing));
  }
  return rejected;
}

/** The error for an intact file that would lose rows. Its code depends on the reason for which the lost objects were not received. */
function incompleteError(lost: readonly ObjectLine[], missing: Missing): CryptodlError {
  const keys = lost.map((line) => line.key).join(', ');
  const file = lost[0]?.file ?? '';
  const causes = lost.map((line) => missing.get(line.key));
  const errors = causes.filter((cause) => cause instanceof CryptodlError);
  const cause = errors.find((error) => error.retryable) ?? errors[0];
  if (cause !== undefined || causes.includes(undefined)) {
    const code = cause === undefined || cause.retryable ? 'partition-incomplete' : cause.code;
    const text = `${file} was not changed: ${keys} could not be fetched again`;
    return new CryptodlError(code, text, { cause });
  }
  return new CryptodlError(
    'object-withdrawn',
    `${file} was not changed: the exchange no longer has ${keys}, and only this file has its rows`,
    { hint: 'leave --force out, or download into another --out' },
  );
}
