/**
 * The manifest of a series: an append-only JSON Lines file, whose place `manifest-place.ts` knows. A line describes one source object
 * and the partition file that contains its rows; other lines record absent periods and dropped objects. Later lines supersede earlier ones. Lines of
 * commits that did not happen are left out.
 */
import { monthOf } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { FORMATS, type Format, type Period } from '../model/task.js';
import { Absences } from './absences.js';
import { HeldObjects } from './held-objects.js';
import type { DroppedLine, ManifestLine } from '../model/manifest-line.js';
import { createLineReader, lineError, NewerVersion } from './check-manifest-line.js';
import { completeLinesOf } from './complete-lines.js';
import { hasManifest, openManifest } from './manifest-place.js';
import type { ObjectKeys } from './object-keys.js';
import { isOneOf, mayHaveUndone, FileCommits } from './undone-commits.js';

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

/** Whether an object of any format has the period. */
export function isHeld(manifest: Manifest, period: Period): boolean {
  return FORMATS.some(
    (format) => (manifest[format].of(period) ?? manifest[format].ofMonth(monthOf(period.from))) !== undefined,
  );
}

/** Adds a line. Throws `manifest-damaged` for an absence whose period is no date of the calendar, or with an invalid `at` or `asked`. */
export function applyLine(manifest: Manifest, line: ManifestLine): void {
  if (line.kind === 'dropped') manifest[line.format].drop(line.key);
  else if (line.kind === 'absent') manifest.absences.add(line, (period) => isHeld(manifest, period));
  else {
    const held = manifest[line.settings.format];
    const { size } = held;
    held.add(line);
    manifest.absences.addObject(line, held.size > size);
  }
}

/** Most readings of a manifest. It is read again until its undone commits stay the same, because another process may commit in between. */
const MOST_READINGS = 5;

/**
 * Reads a manifest; a missing file gives an empty one. An incomplete last line is ignored. Rejects with `manifest-damaged`,
 * naming file and line, for any other damaged line and for a line of a newer version.
 */
export async function readManifest(seriesFolder: string, archive: ObjectKeys): Promise<Manifest> {
  const { manifest } = await foldManifest(seriesFolder, archive, () => ({
    manifest: emptyManifest(),
    onLine: ({ content }) => {
      if (content instanceof CryptodlError) throw content;
    },
  }));
  return manifest;
}

export interface ReadLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
  /** The parsed line, or its error if it is damaged or of a newer version. */
  readonly content: ManifestLine | CryptodlError;
}

interface ManifestFold {
  readonly manifest: Manifest;
  /** Gets each complete line, also a damaged one, except for those of `onUndone`. */
  onLine(line: ReadLine): void;
  /** Gets the lines of commits that did not happen. */
  onUndone?(text: string): void;
  /** Gets an incomplete last line. */
  onTail?(text: string): void;
}

/**
 * Adds all complete lines to the manifest of a fold, except for those of commits that did not happen. After a damaged line, the following
 * lines still come. A missing file has no lines. `begin` is called again if the manifest must be read again.
 */
export async function foldManifest<Fold extends ManifestFold>(
  seriesFolder: string,
  archive: ObjectKeys,
  begin: () => Fold,
): Promise<Fold> {
  let undone: ReadonlySet<string> = new Set();
  for (let attempt = 1; ; attempt += 1) {
    const fold = begin();
    await readInto(fold, seriesFolder, archive, undone);
    if (attempt === MOST_READINGS || !(await mayHaveUndone(seriesFolder, fold.manifest))) return fold;
    const found = await undoneIn(seriesFolder, archive);
    if (undone.size === found.size && [...found].every((commit) => undone.has(commit))) return fold;
    undone = found;
  }
}

async function undoneIn(seriesFolder: string, archive: ObjectKeys): Promise<ReadonlySet<string>> {
  const commits = new FileCommits();
  const onLine = ({ content }: ReadLine): void => {
    if (!(content instanceof CryptodlError)) commits.add(content);
  };
  await readInto({ manifest: emptyManifest(), onLine }, seriesFolder, archive);
  return commits.undone(seriesFolder);
}

async function readInto(
  fold: ManifestFold,
  seriesFolder: string,
  archive: ObjectKeys,
  undone: ReadonlySet<string> = new Set(),
): Promise<void> {
  const opened = await openManifest(seriesFolder);
  if (opened === undefined) return;
  const { file, path } = opened;
  const readLine = createLineReader(seriesFolder, archive);
  let number = 0;
  for await (const texts of completeLinesOf(file, path, (text) => fold.onTail?.(text)))
    for (const text of texts) {
      number += 1;
      let line: ReadLine['content'];
      let isUndone = false;
      try {
        line = readLine(text);
        isUndone = isOneOf(undone, line);
        if (!isUndone) applyLine(fold.manifest, line);
        else if (line.kind === 'object') fold.manifest[line.settings.format].undone.add(line.file);
      } catch (error) {
        line = lineError(`${path} line ${number}`, error);
      }
      if (isUndone) fold.onUndone?.(text);
      else fold.onLine({ number, text, content: line });
    }
}

interface DamagedLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
  readonly why: string;
}

/** The content of the valid lines of a manifest, and what its lines tell beyond it. */
export class InspectedManifest implements ManifestFold {
  exists = true;
  readonly manifest = emptyManifest();
  /** The text of the valid lines and of the lines of a later version, in file order. */
  readonly sound: string[] = [];
  readonly damaged: DamagedLine[] = [];
  /** Numbers of lines that a later version of cryptodl wrote. */
  readonly newer: number[] = [];
  /** The errors of damaged and newer lines. */
  readonly refused: CryptodlError[] = [];
  readonly dropped: DroppedLine[] = [];
  /** Number of replaced objects per format. */
  readonly revisions: Partial<Record<Format, number>> = {};
  #last = 0;

  onLine({ number, text, content }: ReadLine): void {
    this.#last = number;
    if (content instanceof CryptodlError) {
      this.refused.push(content);
      const why = content.cause;
      if (why instanceof NewerVersion) this.newer.push(number);
      else if (why instanceof Error) this.damaged.push({ number, text, why: why.message });
      if (!(why instanceof NewerVersion)) return;
    } else if (content.kind === 'dropped') this.dropped.push(content);
    else if (content.kind === 'object' && 'replaces' in content) {
      const { format } = content.settings;
      this.revisions[format] = (this.revisions[format] ?? 0) + 1;
    }
    this.sound.push(text);
  }

  /** Another writer may be about to give the file of this line its name. */
  onUndone(text: string): void {
    this.sound.push(text);
  }

  onTail(text: string): void {
    this.damaged.push({ number: this.#last + 1, text, why: 'it is incomplete' });
  }
}

export async function inspectManifest(seriesFolder: string, archive: ObjectKeys): Promise<InspectedManifest> {
  const inspected = await foldManifest(seriesFolder, archive, () => new InspectedManifest());
  inspected.exists = await hasManifest(seriesFolder);
  return inspected;
}
