/**
 * The memory of the lake: one append-only JSON Lines file per series, beside its data. Each line tells of one source
 * object and of the partition file that it went into; later lines supersede earlier ones.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { monthOf, monthStart, parsePeriod } from '../calendar.js';
import { CryptodlError, ofFile } from '../errors.js';
import type { ArchiveObject, Cadence, Format, Period, Revision, Settings, ShortObject } from '../task.js';
import { Absences } from './absences.js';
import type { AbsentLine } from './absences.js';
import { isFileOfLake, openInside } from './inside.js';
import { MANIFEST } from './layout.js';
import { syncDirectory } from './publish.js';
import { lengthOfWholeLines, wholeLines } from './whole-lines.js';

export interface ObjectLine {
  readonly v: 1;
  readonly kind: 'object';
  readonly key: string;
  readonly cadence: Cadence;
  /** `2024-01-15` or `2024-01`. */
  readonly period: string;
  readonly etag?: string;
  readonly lastModified?: string;
  readonly bytes: number;
  readonly sha256: string;
  /** What vouched for the bytes: the sidecar, the listing's ETag, or only the zip's own CRC; REST's rows are looked at one by one. */
  readonly verified: 'sidecar' | 'etag' | 'crc' | 'rest';
  /** The period was not over when its rows were asked for. */
  readonly open?: true;
  /** The revision of the same object that was held before. */
  readonly replaces?: Revision;
  /** A later revision that has fewer rows than this one, and was not taken for that. */
  readonly shorter?: Revision & { readonly rows: number };
  /** The sidecar names another digest, but size and ETag are those of the listing: the sidecar's digest. */
  readonly staleSidecar?: string;
  /** REST's rows stand in for this revision of the archive's object, which lacks those in its gaps. */
  readonly insteadOf?: ShortObject;
  /** A monthly object that lacks whole days: whether its daily objects have them was not found out yet. */
  readonly daysPending?: true;
  /** Rows of this object in the file; absent for zip. */
  readonly rows?: number;
  /** ISO instants of the first and last row, by time. */
  readonly first?: string;
  readonly last?: string;
  /** Exact duplicates within the object that were dropped. */
  readonly duplicates?: number;
  /** Rows with the id of another row of the object and other values: all of them are in the file. */
  readonly idConflicts?: number;
  /** Where rows of a regular grain are missing: ISO instants `[from, to)`, ascending, the first `MOST_GAPS` of them. */
  readonly gaps?: readonly (readonly [string, string])[];
  /** Relative to the series' folder; for zip to the lake's root. */
  readonly file: string;
  readonly fileBytes: number;
  readonly fileSha256: string;
  /** Rows of the whole file after this commit; absent for zip. */
  readonly fileRows?: number;
  readonly settings: Settings;
  /** When it was committed, ISO. */
  readonly at: string;
  readonly tool: string;
}

/** More gaps than these within one object are not remembered one by one. */
export const MOST_GAPS = 100;

/** An object whose rows are no longer in its file; `repair` asks for what is not held since. */
export interface DroppedLine {
  readonly v: 1;
  readonly kind: 'dropped';
  readonly key: string;
  readonly format: Format;
  readonly at: string;
  /** How it was written, where no other line of the series may tell. */
  readonly settings?: Settings;
}

export type ManifestLine = ObjectLine | DroppedLine | AbsentLine;

/** Whether its rows came from REST: what the archive publishes of the period takes their place. */
export function isFromRest({ verified }: ObjectLine): boolean {
  return verified === 'rest';
}

/** What of a line tells its object from another state of it. */
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
 * What is known of a held object without asking for it: not its size, which may have changed. What came from REST can only
 * come from there again.
 */
export function heldObject(line: ObjectLine, period: Period): ArchiveObject {
  const { from, to } = period;
  if (!isFromRest(line)) return { key: line.key, period };
  const mark = {
    ...(line.open === true ? { open: true as const } : {}),
    ...(line.insteadOf === undefined ? {} : { insteadOf: line.insteadOf }),
  };
  return { key: line.key, period, rest: { from, to, otherwise: 'before-history', ...mark } };
}

function byPeriod(a: ObjectLine, b: ObjectLine): number {
  return a.period < b.period ? -1 : 1;
}

/** What a series holds in one format. */
export class Held {
  readonly #byDay = new Map<number, ObjectLine>();
  readonly #byMonth = new Map<number, ObjectLine>();
  readonly #lastOfFile = new Map<string, ObjectLine>();

  add(line: ObjectLine): void {
    const period = parsePeriod(line.cadence, line.period);
    if (period === undefined) throw new CryptodlError('manifest-damaged', `"${line.period}" is no period`);
    if (line.cadence === 'daily') {
      this.#byMonth.delete(monthOf(period.from));
      this.#byDay.set(period.from, line);
    } else {
      for (let day = period.from; day < period.to; day += 1) this.#byDay.delete(day);
      this.#byMonth.set(monthOf(period.from), line);
    }
    this.#lastOfFile.set(line.file, line);
  }

  drop(key: string): void {
    for (const lines of [this.#byDay, this.#byMonth]) {
      for (const [at, line] of lines) if (line.key === key) lines.delete(at);
    }
  }

  get size(): number {
    return this.#byDay.size + this.#byMonth.size;
  }

  lines(): ObjectLine[] {
    return [...this.#byDay.values(), ...this.#byMonth.values()].sort(byPeriod);
  }

  /** First day that is held. */
  first(): number | undefined {
    const days = [...this.#byDay.keys(), ...[...this.#byMonth.keys()].map(monthStart)];
    return days.length === 0 ? undefined : Math.min(...days);
  }

  /** Day after the last one that is held. */
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

  /** Objects in a file, in period order. */
  inFile(file: string): ObjectLine[] {
    const lines = [...this.#byDay.values(), ...this.#byMonth.values()].filter((line) => line.file === file);
    return lines.sort(byPeriod);
  }

  /** The last commit of a file: its size and digest now. */
  lastOfFile(file: string): ObjectLine | undefined {
    return this.#lastOfFile.get(file);
  }

  files(): string[] {
    return [...this.#lastOfFile.keys()];
  }
}

export interface Manifest extends Readonly<Record<Format, Held>> {
  readonly absences: Absences;
}

export function emptyManifest(): Manifest {
  return { parquet: new Held(), csv: new Held(), zip: new Held(), absences: new Absences() };
}

/** An absent file is an empty manifest. A torn last line is ignored; damage before it is an error with file and line. */
export async function readManifest(seriesFolder: string): Promise<Manifest> {
  const manifest = emptyManifest();
  for await (const lines of manifestLines(seriesFolder)) {
    for (const line of lines) {
      const refused = line instanceof CryptodlError ? line : remember(manifest, line);
      if (refused !== undefined) throw refused;
    }
  }
  return manifest;
}

/** One whole line, and where it is. */
interface ReadLine {
  readonly where: string;
  readonly line: ManifestLine;
}

/**
 * Every whole line, some at a time: what it says, or why it is refused, in which case the others still come. An absent
 * file has none; a torn last line is left out.
 */
export async function* manifestLines(seriesFolder: string): AsyncGenerator<(ReadLine | CryptodlError)[]> {
  const file = join(seriesFolder, MANIFEST);
  let number = 0;
  for await (const texts of wholeLines(file)) {
    yield texts.map((text) => {
      number += 1;
      const where = `${file} line ${number}`;
      try {
        return { where, line: knownLine(JSON.parse(text)) };
      } catch (error) {
        return refusedLine(where, error);
      }
    });
  }
}

/** Thrown with the version that a later cryptodl wrote. */
export class NewerVersion extends Error {}

function refusedLine(where: string, cause: unknown): CryptodlError {
  if (cause instanceof NewerVersion) {
    const text = `${where} is of version ${cause.message}, this cryptodl knows version 1`;
    return new CryptodlError('manifest-damaged', text, {
      cause,
      hint: 'go on with the newer cryptodl that wrote it, or choose another --out',
    });
  }
  return new CryptodlError('manifest-damaged', `${where} is damaged`, {
    cause,
    hint: 'restore the file; or set the line aside with cryptodl verify --fix, and fetch its object again with cryptodl repair',
    correction: { command: ['verify', '--fix'] },
  });
}

/** Throws when the line makes no sense, and `NewerVersion`. */
export function applyLine(manifest: Manifest, given: unknown): void {
  const line = knownLine(given);
  if (line.kind === 'dropped') manifest[line.format].drop(line.key);
  else if (line.kind === 'absent') manifest.absences.add(line);
  else manifest[line.settings.format].add(line);
}

function knownLine(line: unknown): ManifestLine {
  const { v: version } = line as { v: unknown };
  if (typeof version === 'number' && version > 1) throw new NewerVersion(String(version));
  if (version !== 1) throw new TypeError('unknown version');
  const known = line as ManifestLine;
  if (known.kind === 'dropped' || known.kind === 'absent') return known;
  if (!isFileOfLake(known.settings.format, known.file))
    throw new TypeError('"file" is no name of a file of the lake');
  return known;
}

/** Puts a line on top of those before it. Returns why it cannot be: nothing of it is remembered then. */
export function remember(manifest: Manifest, { where, line }: ReadLine): CryptodlError | undefined {
  try {
    applyLine(manifest, line);
    return undefined;
  } catch (error) {
    return refusedLine(where, error);
  }
}

/** Appends all lines in one write and syncs; a torn tail of an earlier crash is cut back to its last newline first. */
export async function appendManifest(seriesFolder: string, lines: readonly ManifestLine[]): Promise<void> {
  const { O_APPEND, O_CREAT, O_RDWR } = constants;
  const file = await openInside(join(seriesFolder, MANIFEST), O_APPEND | O_CREAT | O_RDWR);
  try {
    const { size } = await file.stat();
    const whole = await lengthOfWholeLines(file, size);
    if (whole < size) await file.truncate(whole);
    await file.appendFile(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    await file.datasync();
    // A new file is an entry of its folder as well.
    if (size === 0) await syncDirectory(seriesFolder);
  } catch (error) {
    throw ofFile(error, join(seriesFolder, MANIFEST));
  } finally {
    await file.close();
  }
}
