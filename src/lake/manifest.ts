/**
 * The manifest of a series: an append-only JSON Lines file, whose place `manifest-place.ts` knows. A line describes one source object
 * and the partition file that contains its rows; other lines record absent periods and dropped objects. Later lines supersede earlier ones.
 */
import { constants } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { monthOf, monthStart, parsePeriod } from '../model/calendar.js';
import { CryptodlError, withPath } from '../model/errors.js';
import type { ArchiveObject, Format, Period, Revision } from '../model/task.js';
import { Absences } from './absences.js';
import { changeBackedManifest, openBackedSeries } from './backing.js';
import { createLineReader, NewerVersion } from './check-manifest-line.js';
import type { ObjectKeys } from './check-manifest-line.js';
import { claimManifest, openManifest } from './manifest-place.js';
import { openRegularFile } from './path-checks.js';
import { publish, syncDirectory } from './publish.js';
import type { ManifestLine, ObjectLine } from './manifest-line.js';
import { completeLinesLength, completeLinesOf } from './complete-lines.js';

/** Maximum number of gaps recorded for one object. */
export const MAX_GAPS = 100;

/** Whether the rows came from REST. Rows that the archive publishes for the period replace them. */
export function isFromRest({ verified }: ObjectLine): boolean {
  return verified === 'rest';
}

/** The revision of the object in a line. */
export function heldRevision({ etag, lastModified, bytes, sha256, at }: ObjectLine): Revision {
  return {
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
    bytes,
    sha256,
    at,
  };
}

/**
 * The archive object of a line, without its size and ETag, which may have changed upstream. Rows from REST are requested from
 * REST again.
 */
export function heldObject(line: ObjectLine, period: Period): ArchiveObject {
  const { from, to } = period;
  if (!isFromRest(line)) return { key: line.key, period, heldBytes: line.bytes };
  const mark = {
    ...(line.open === true ? { open: true as const } : {}),
    ...(line.insteadOf === undefined ? {} : { insteadOf: line.insteadOf }),
    ...(line.archiveFailed === undefined ? {} : { archiveFailed: line.archiveFailed }),
  };
  return { key: line.key, period, rest: { from, to, reasonIfEmpty: 'before-history', ...mark } };
}

function byPeriod(a: ObjectLine, b: ObjectLine): number {
  return a.period < b.period ? -1 : 1;
}

/** The objects that a series holds in one format. */
export class HeldObjects {
  readonly #byDay = new Map<number, ObjectLine>();
  readonly #byMonth = new Map<number, ObjectLine>();
  /** A file with one object, as in lakes of day partitions, has no set of its own. */
  readonly #byFile = new Map<string, ObjectLine | Set<ObjectLine>>();
  readonly #lastOfFile = new Map<string, ObjectLine>();
  readonly #dropped = new Set<string>();

  /** Adds a line. It supersedes earlier lines with the same days. */
  add(line: ObjectLine): void {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined) throw new CryptodlError('manifest-damaged', `"${line.period}" is not a period`);
    if (line.cadence === 'daily') {
      this.#remove(this.#byMonth, monthOf(period.from));
      this.#remove(this.#byDay, period.from);
      this.#byDay.set(period.from, line);
    } else {
      for (let day = period.from; day < period.to; day += 1) this.#remove(this.#byDay, day);
      this.#remove(this.#byMonth, monthOf(period.from));
      this.#byMonth.set(monthOf(period.from), line);
    }
    const inFile = this.#byFile.get(line.file);
    if (inFile === undefined) this.#byFile.set(line.file, line);
    else if (inFile instanceof Set) inFile.add(line);
    else this.#byFile.set(line.file, new Set([inFile, line]));
    this.#lastOfFile.set(line.file, line);
    this.#dropped.delete(line.key);
  }

  #remove(lines: Map<number, ObjectLine>, at: number): void {
    const line = lines.get(at);
    if (line === undefined) return;
    lines.delete(at);
    const inFile = this.#byFile.get(line.file);
    if (inFile instanceof Set) inFile.delete(line);
    else if (inFile === line) this.#byFile.delete(line.file);
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

  lines(): ObjectLine[] {
    return [...this.#byDay.values(), ...this.#byMonth.values()].sort(byPeriod);
  }

  /** The first held day. */
  first(): number | undefined {
    const days = [...this.#byDay.keys(), ...[...this.#byMonth.keys()].map(monthStart)];
    return days.length === 0 ? undefined : Math.min(...days);
  }

  /** The day after the last held day. */
  end(): number | undefined {
    const ends = [
      ...[...this.#byDay.keys()].map((day) => day + 1),
      ...[...this.#byMonth.keys()].map((month) => monthStart(month + 1)),
    ];
    return ends.length === 0 ? undefined : Math.max(...ends);
  }

  ofDay(day: number): ObjectLine | undefined {
    return this.#byDay.get(day);
  }

  ofMonth(month: number): ObjectLine | undefined {
    return this.#byMonth.get(month);
  }

  /** Objects with at least one day in the period. */
  overlapping({ from, to }: Pick<Period, 'from' | 'to'>): ObjectLine[] {
    const found: (ObjectLine | undefined)[] = [];
    for (let month = monthOf(from); month <= monthOf(to - 1); month += 1)
      found.push(this.#byMonth.get(month));
    for (let day = from; day < to; day += 1) found.push(this.#byDay.get(day));
    return found.filter((line) => line !== undefined);
  }

  /** Objects in a file, in period order. */
  inFile(file: string): ObjectLine[] {
    const inFile = this.#byFile.get(file) ?? [];
    return 'kind' in inFile ? [inFile] : [...inFile].sort(byPeriod);
  }

  /** The last line that names a file: it has the current size and digest of the file. */
  lastOfFile(file: string): ObjectLine | undefined {
    return this.#lastOfFile.get(file);
  }

  files(): string[] {
    return [...this.#lastOfFile.keys()];
  }
}

export interface Manifest extends Readonly<Record<Format, HeldObjects>> {
  readonly absences: Absences;
}

export function emptyManifest(): Manifest {
  return {
    parquet: new HeldObjects(),
    csv: new HeldObjects(),
    zip: new HeldObjects(),
    absences: new Absences(),
  };
}

/**
 * Reads a manifest; a missing file gives an empty one. An incomplete last line is ignored. Rejects with `manifest-damaged`,
 * naming file and line, for any other damaged line and for a line of a newer version.
 */
export async function readManifest(seriesFolder: string, archive: ObjectKeys): Promise<Manifest> {
  const manifest = emptyManifest();
  for await (const lines of readManifestLines(seriesFolder, archive)) {
    for (const line of lines) {
      const refused = line instanceof CryptodlError ? line : addLine(manifest, line);
      if (refused !== undefined) throw refused;
    }
  }
  return manifest;
}

/** One complete line with its file and line number. */
interface ReadLine {
  readonly where: string;
  readonly line: ManifestLine;
}

/**
 * All complete lines, in batches. A damaged line is returned as an error, and the following lines still come. A missing file
 * has no lines; an incomplete last line is left out.
 */
export async function* readManifestLines(
  seriesFolder: string,
  archive: ObjectKeys,
): AsyncGenerator<(ReadLine | CryptodlError)[]> {
  const opened = await openManifest(seriesFolder);
  if (opened === undefined) return;
  const { file, path } = opened;
  const readLine = createLineReader(seriesFolder, archive);
  let number = 0;
  for await (const texts of completeLinesOf(file, path)) {
    yield texts.map((text) => {
      number += 1;
      const where = `${path} line ${number}`;
      try {
        return { where, line: readLine(text) };
      } catch (error) {
        return lineError(where, error);
      }
    });
  }
}

function lineError(where: string, cause: unknown): CryptodlError {
  if (cause instanceof NewerVersion) {
    const text = `${where} has version ${cause.message}; this cryptodl reads version 1`;
    return new CryptodlError('manifest-damaged', text, {
      cause,
      hint: 'use the newer cryptodl that wrote it, or choose another --out',
    });
  }
  return new CryptodlError('manifest-damaged', `${where} is damaged`, {
    cause,
    hint: 'restore the file; or move the line to the quarantine with cryptodl verify --fix, and fetch its object again with cryptodl repair',
    correction: { command: ['verify', '--fix'] },
  });
}

/** Adds a line. Throws `manifest-damaged` for a period that is no date of the calendar, and for an invalid `at` or `asked`. */
export function applyLine(manifest: Manifest, line: ManifestLine): void {
  if (line.kind === 'dropped') manifest[line.format].drop(line.key);
  else if (line.kind === 'absent') manifest.absences.add(line);
  else manifest[line.settings.format].add(line);
}

/** Adds a line. Returns the error of a line that cannot be added; the manifest is then unchanged. */
export function addLine(manifest: Manifest, { where, line }: ReadLine): CryptodlError | undefined {
  try {
    applyLine(manifest, line);
    return undefined;
  } catch (error) {
    return lineError(where, error);
  }
}

/** Appends all lines in one write and syncs. First removes an incomplete last line that an earlier crash has left. */
export async function appendManifest(seriesFolder: string, lines: readonly ManifestLine[]): Promise<void> {
  // An exclusive change must not begin with a wait for the other side.
  await openBackedSeries(seriesFolder);
  await changeBackedManifest(seriesFolder, () => appendLines(seriesFolder, lines));
}

async function appendLines(seriesFolder: string, lines: readonly ManifestLine[]): Promise<void> {
  const { path, hasHardLinks } = await claimManifest(seriesFolder);
  if (hasHardLinks) await breakHardLink(path);
  const { O_APPEND, O_CREAT, O_RDWR } = constants;
  const file = await openRegularFile(path, O_APPEND | O_CREAT | O_RDWR);
  try {
    const { size } = await file.stat();
    const whole = await completeLinesLength(file, size);
    if (whole < size) await file.truncate(whole);
    await file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await file.datasync();
    // The folder entry of a new file must be synced too.
    if (size === 0) await syncDirectory(dirname(path));
  } catch (error) {
    throw withPath(error, path);
  } finally {
    await file.close();
  }
}

/** Replaces a manifest that has hard links by a copy, so that a snapshot made with `cp -al` does not change. */
async function breakHardLink(path: string): Promise<void> {
  const staged = `${path}.partial`;
  await rm(staged, { force: true });
  await copyFile(path, staged, constants.COPYFILE_EXCL);
  await publish(staged, path);
}
