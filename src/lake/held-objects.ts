/** The objects that a series holds, by the lines of its manifest. */
import { grouped } from '../model/by-name.js';
import { monthOf, monthStart, parsePeriod } from '../model/calendar.js';
import type { Period, Settings } from '../model/task.js';
import type { FileBefore, ObjectLine } from '../model/manifest-line.js';

const byPeriod = (a: ObjectLine, b: ObjectLine): number => (a.period < b.period ? -1 : 1);

/** A held object with its half-open range of days. */
export interface HeldSpan {
  readonly from: number;
  readonly to: number;
  readonly facts: ObjectLine;
}

/** The objects that a series holds in one format. */
export class HeldObjects {
  readonly #byDay = new Map<number, ObjectLine>();
  readonly #byMonth = new Map<number, ObjectLine>();
  readonly #lastOfFile = new Map<string, ObjectLine>();
  readonly #dropped = new Set<string>();
  #newest: ObjectLine | undefined;
  /** Files with lines of commits that did not happen. */
  readonly undone = new Set<string>();
  /** Made at its first use, because a run that has nothing to fetch does not use it. */
  #byFile: Map<string, Set<ObjectLine>> | undefined;

  /** Adds a line. It supersedes earlier lines with the same days. */
  add(line: ObjectLine): void {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined) throw new TypeError(`"${line.period}" is not a period`);
    this.#follow(line);
    if (line.cadence === 'daily') {
      if (this.#byMonth.size > 0) this.#remove(this.#byMonth, monthOf(period.from));
      this.#remove(this.#byDay, period.from);
      this.#byDay.set(period.from, line);
    } else {
      for (let day = period.from; day < period.to; day += 1) this.#remove(this.#byDay, day);
      this.#remove(this.#byMonth, monthOf(period.from));
      this.#byMonth.set(monthOf(period.from), line);
    }
    if (this.#byFile !== undefined) addToFile(this.#byFile, line);
    this.#lastOfFile.set(line.file, line);
    // A repeated line of an earlier commit names its own file as the one before. It counts only where the earlier line is gone.
    if (this.#newest === undefined || line.fileBefore?.sha256 !== line.fileSha256) this.#newest = line;
    if (this.#dropped.size > 0) this.#dropped.delete(line.key);
  }

  /** If the commit of a line replaces another file than the last one of its lines, the commit in between did not happen. */
  #follow({ file, fileBefore, at }: ObjectLine): void {
    const last = fileBefore === undefined ? undefined : this.#lastOfFile.get(file);
    if (last !== undefined && last.at !== at && last.fileSha256 !== fileBefore?.sha256) this.undone.add(file);
  }

  /** The last line of each file that has objects, if its commit replaces it. */
  replacing(): ObjectLine[] {
    const found = new Map<string, ObjectLine>();
    for (const { file } of [...this.#byDay.values(), ...this.#byMonth.values()]) {
      const last = found.has(file) ? undefined : this.#lastOfFile.get(file);
      if (last?.fileBefore !== undefined) found.set(file, last);
    }
    return [...found.values()];
  }

  /** The last commit of a file that has objects, for the lines of a commit that replaces it. */
  fileBefore(file: string): FileBefore | undefined {
    const last = this.inFile(file).length === 0 ? undefined : this.#lastOfFile.get(file);
    return last === undefined ? undefined : { bytes: last.fileBytes, sha256: last.fileSha256 };
  }

  #remove(lines: Map<number, ObjectLine>, index: number): void {
    const line = lines.get(index);
    if (line === undefined) return;
    lines.delete(index);
    this.#byFile?.get(line.file)?.delete(line);
  }

  drop(key: string): void {
    this.#dropped.add(key);
    for (const lines of [this.#byDay, this.#byMonth]) {
      for (const [at, line] of lines) if (line.key === key) this.#remove(lines, at);
    }
  }

  /** Keys of dropped objects that were not committed again. Other objects may hold their days. */
  dropped(): readonly string[] {
    return [...this.#dropped];
  }

  get size(): number {
    return this.#byDay.size + this.#byMonth.size;
  }

  /** All objects with their days, in order. */
  spans(): HeldSpan[] {
    const spans: HeldSpan[] = [];
    for (const [month, facts] of this.#byMonth)
      spans.push({ from: monthStart(month), to: monthStart(month + 1), facts });
    for (const [day, facts] of this.#byDay) spans.push({ from: day, to: day + 1, facts });
    return spans.sort((a, b) => a.from - b.from);
  }

  /** In period order. */
  lines(): ObjectLine[] {
    return [...this.#byDay.values(), ...this.#byMonth.values()].sort(byPeriod);
  }

  /** The object that was committed last. */
  newest(): ObjectLine | undefined {
    return this.size === 0 ? undefined : this.#newest;
  }

  /** The settings of all objects: one, unless a rewrite of the series did not end. */
  settings(): ReadonlySet<Settings> {
    // Nearly all lines of a manifest share one object.
    return new Set(this.spans().map(({ facts }) => facts.settings));
  }

  /** The first held day. */
  first(): number | undefined {
    return this.spans()[0]?.from;
  }

  /** The day after the last held day. */
  end(): number | undefined {
    return this.spans().at(-1)?.to;
  }

  ofDay(day: number): ObjectLine | undefined {
    return this.#byDay.get(day);
  }

  ofMonth(month: number): ObjectLine | undefined {
    return this.#byMonth.get(month);
  }

  of({ cadence, from }: Period): ObjectLine | undefined {
    return cadence === 'daily' ? this.ofDay(from) : this.ofMonth(monthOf(from));
  }

  hasDay(day: number): boolean {
    return this.#byDay.has(day);
  }

  overlapping({ from, to }: Pick<Period, 'from' | 'to'>): ObjectLine[] {
    const found: (ObjectLine | undefined)[] = [];
    for (let month = monthOf(from); month <= monthOf(to - 1); month += 1) found.push(this.ofMonth(month));
    for (let day = from; day < to; day += 1) found.push(this.ofDay(day));
    return found.filter((line) => line !== undefined);
  }

  /** Objects in a file, in period order. */
  inFile(file: string): ObjectLine[] {
    if (this.#byFile === undefined) {
      this.#byFile = new Map();
      for (const line of this.lines()) addToFile(this.#byFile, line);
    }
    return [...(this.#byFile.get(file) ?? [])].sort(byPeriod);
  }

  /** The objects of each file, in period order. */
  linesByFile(): Map<string, [ObjectLine, ...ObjectLine[]]> {
    return grouped(this.lines(), ({ file }) => file);
  }

  /** The last line that names a file: it has the current size and digest of the file. */
  lastOfFile(file: string): ObjectLine | undefined {
    return this.#lastOfFile.get(file);
  }

  files(): string[] {
    return [...this.#lastOfFile.keys()];
  }
}

function addToFile(files: Map<string, Set<ObjectLine>>, line: ObjectLine): void {
  const inFile = files.get(line.file);
  if (inFile === undefined) files.set(line.file, new Set([line]));
  else inFile.add(line);
}
