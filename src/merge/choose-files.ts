/**
 * Compares a series in two lakes, and chooses the files and manifest lines that the target lacks. A file of the target is replaced only if
 * the source knows each of its objects: then the source continued the series, and the target has an earlier state of it.
 */
import { parsePeriod } from '../model/calendar.js';
import { FORMATS } from '../model/task.js';
import type { Format } from '../model/task.js';
import type { AbsentLine } from '../lake/absences.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { DroppedLine, ManifestLine, ObjectLine } from '../lake/manifest-line.js';
import { differingSettings } from '../lake/settings.js';
import { hasSeen, overlapping, sameObject } from './series-state.js';
import type { SeriesState } from './series-state.js';

/** A file of the source with its manifest lines. The last line has size and digest of the file. */
export interface ChosenFile {
  readonly format: Format;
  readonly file: string;
  readonly lines: readonly ObjectLine[];
  readonly committed: ObjectLine;
}

export interface Choice {
  readonly files: readonly ChosenFile[];
  /** Files of the target whose objects are in `files`, except for zips. */
  readonly dead: readonly { readonly file: string; readonly committed: ObjectLine }[];
  /** Lines about absent and dropped objects. */
  readonly others: readonly ManifestLine[];
}

/** Why a series cannot be merged. */
export interface Refusal {
  readonly reason: 'clash' | 'settings' | 'damaged';
  readonly text: string;
}

export function chooseFiles(source: SeriesState, target: SeriesState): Choice | Refusal {
  const files: ChosenFile[] = [];
  const dead: { file: string; committed: ObjectLine }[] = [];
  for (const format of FORMATS) {
    const chosen = chooseOfFormat(source, target, format);
    if ('reason' in chosen) return chosen;
    files.push(...chosen.files);
    dead.push(...chosen.dead);
  }
  return { files, dead, others: [...droppedLines(source, target, files), ...absentLines(source, target)] };
}

function chooseOfFormat(
  source: SeriesState,
  target: SeriesState,
  format: Format,
): Pick<Choice, 'files' | 'dead'> | Refusal {
  const held = source.manifest[format];
  const there = target.manifest[format];
  const settings = held.last()?.settings;
  const [difference] = settings === undefined ? [] : differingSettings(there, settings);
  if (difference !== undefined) {
    const { name, requested, held: own } = difference;
    return {
      reason: 'settings',
      text: `${format} files have ${name} ${requested} here, and ${own} in the target`,
    };
  }
  const live = held.files().filter((file) => held.inFile(file).length > 0);
  const chosen = new Set(
    live.filter((file) => !held.inFile(file).every((line) => hasSeen(target, format, line))),
  );
  const affected = new Set<string>();
  // Each chosen file may replace files of the target, and the objects of these may be in further files of the source.
  for (const file of chosen) {
    for (const old of affectedFiles(there, file, held.inFile(file))) {
      affected.add(old);
      for (const line of there.inFile(old)) {
        if (!isContinued(source, format, line))
          return {
            reason: 'clash',
            text:
              overlapping(held, line).length > 0
                ? `both lakes have ${line.period} in ${format}, with different objects or revisions`
                : `both lakes have ${old}, and each has periods that the other lacks: only the target has ${line.period}`,
          };
        for (const other of overlapping(held, line)) chosen.add(other.file);
      }
    }
  }
  const files = [...chosen].map((file) => chosenFile(held, format, file));
  const dead = format === 'zip' ? [] : [...affected].filter((file) => !chosen.has(file));
  return { files, dead: dead.flatMap((file) => deadFile(there, file)) };
}

function deadFile(held: HeldObjects, file: string): Choice['dead'] {
  const committed = held.lastOfFile(file);
  return committed === undefined ? [] : [{ file, committed }];
}

/** The files of the target with a day of these lines, and the file of the same name. */
function affectedFiles(there: HeldObjects, file: string, lines: readonly ObjectLine[]): Set<string> {
  const names = lines.flatMap((line) => overlapping(there, line)).map((line) => line.file);
  return new Set(there.inFile(file).length > 0 ? [...names, file] : names);
}

/** Whether the source has seen an object of the target, and now holds all of its days. */
function isContinued(source: SeriesState, format: Format, line: ObjectLine): boolean {
  const held = source.manifest[format];
  const now = overlapping(held, line);
  if (sameObject(now, line)) return true;
  const days = parsePeriod(line.cadence, line.period);
  if (days === undefined || !hasSeen(source, format, line)) return false;
  const periods = now.flatMap((each) => parsePeriod(each.cadence, each.period) ?? []);
  for (let day = days.from; day < days.to; day += 1)
    if (!periods.some(({ from, to }) => from <= day && day < to)) return false;
  return true;
}

function chosenFile(held: HeldObjects, format: Format, file: string): ChosenFile {
  const lines = held.inFile(file);
  const last = held.lastOfFile(file);
  const latest = lines.at(-1);
  if (last === undefined || latest === undefined) throw new RangeError(`no line names ${file}`);
  const { fileBytes, fileSha256, fileRows } = last;
  // A later line may have taken the place of the last line of the file.
  const committed = lines.includes(last)
    ? last
    : { ...latest, fileBytes, fileSha256, ...(fileRows === undefined ? {} : { fileRows }) };
  const before = lines.filter((line) => line !== (lines.includes(last) ? last : latest));
  return { format, file, lines: [...before, committed], committed };
}

/** Lines of objects that the source lost, and that the target does not hold. `repair` fetches them. */
function droppedLines(source: SeriesState, target: SeriesState, files: readonly ChosenFile[]): DroppedLine[] {
  const chosen = new Set(files.flatMap(({ format, lines }) => lines.map(({ key }) => `${format} ${key}`)));
  const lost = new Map<string, DroppedLine>();
  for (const line of source.lines) if (line.kind === 'dropped') lost.set(`${line.format} ${line.key}`, line);
  return [...lost.values()].filter(
    (line) =>
      source.manifest[line.format].dropped().includes(line.key) &&
      !target.texts.has(JSON.stringify(line)) &&
      !chosen.has(`${line.format} ${line.key}`) &&
      !target.manifest[line.format].lines().some(({ key }) => key === line.key),
  );
}

/** Absent periods of the source, except for those about which the target has a later request. */
function absentLines(source: SeriesState, target: SeriesState): AbsentLine[] {
  return source.lines.filter(
    (line): line is AbsentLine =>
      line.kind === 'absent' && !target.texts.has(JSON.stringify(line)) && !isOlder(line, target),
  );
}

function isOlder(line: AbsentLine, { manifest: { absences } }: SeriesState): boolean {
  const first = parsePeriod(line.cadence, line.first);
  const last = parsePeriod(line.cadence, line.last);
  const atMs = Date.parse(line.at);
  if (first === undefined || last === undefined) return true;
  for (let day = first.from; day < last.to; day += 1) {
    const known = absences.of({ cadence: line.cadence, from: day, to: day + 1 });
    if (known !== undefined && known.atMs > atMs) return true;
  }
  return false;
}
