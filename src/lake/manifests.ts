/** Appends to manifests, and the cache of the manifests that a run uses: every append of the run also updates the cached manifest. */
import { constants } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { withPath } from '../model/errors.js';
import { backingOf, changeManifest } from '../files/backing.js';
import { openRegularFile } from '../files/path-checks.js';
import { publish, syncDirectory } from '../files/publish.js';
import { completeLinesLength } from './complete-lines.js';
import { claimManifest } from './manifest-place.js';
import type { ObjectKeys } from './object-keys.js';
import { applyLine, readManifest, type Manifest } from './manifest.js';
import type { ManifestLine } from '../model/manifest-line.js';

/** A line takes less than 2 kB of memory. A single larger manifest is kept too. */
const MOST_LINES = 10_000;
/** Memory of an empty manifest, in lines. */
const EMPTY_LINES = 4;
/** This number of absences takes as much memory as one line. */
const ABSENCES_PER_LINE = 16;

interface Known {
  readonly manifest: Promise<Manifest>;
  /** Undefined for a lake that is in no bucket. */
  readonly timesChanged: number | undefined;
  /** Its memory, in lines; 0 until it is read. */
  lines: number;
}

/**
 * Valid while no other process writes to the lake: for a run that holds the lock, or for one pass of a read-only command. The
 * most recently used manifests stay in memory, up to `mostLines` in total. A run works on few series at a time, so a
 * manifest that was removed from memory is read again at most once per phase (plan, download).
 */
export class Manifests {
  /** By folder, in the order of their last use. */
  readonly #known = new Map<string, Known>();
  #lines = 0;

  constructor(
    private readonly archive: ObjectKeys,
    private readonly mostLines = MOST_LINES,
  ) {}

  /** The manifest of a series; `append` changes the returned object. Rejects like `readManifest`. */
  of(seriesFolder: string): Promise<Manifest> {
    const timesChanged = backingOf(seriesFolder)?.timesChanged(seriesFolder);
    if (this.#known.get(seriesFolder)?.timesChanged !== timesChanged) this.#evict(seriesFolder);
    const known = this.#known.get(seriesFolder) ?? this.#read(seriesFolder, timesChanged);
    this.#known.delete(seriesFolder);
    this.#known.set(seriesFolder, known);
    return known.manifest;
  }

  /** Appends lines like `appendManifest`. Callers must not run two calls for one series at the same time. */
  async append(
    seriesFolder: string,
    lines: readonly ManifestLine[],
    afterAppend?: () => Promise<void>,
  ): Promise<void> {
    try {
      await appendManifest(seriesFolder, lines, afterAppend);
    } catch (error) {
      // It is unknown whether the lines were written, so the next caller reads the file again.
      this.#evict(seriesFolder);
      throw error;
    }
    const known = this.#known.get(seriesFolder);
    if (known === undefined) return;
    const manifest = await known.manifest;
    for (const line of lines) applyLine(manifest, line);
    this.#updateSize(seriesFolder, known, manifest);
  }

  #read(seriesFolder: string, timesChanged: number | undefined): Known {
    const manifest = readManifest(seriesFolder, this.archive);
    const known: Known = { manifest, timesChanged, lines: 0 };
    manifest.then(
      (read) => {
        this.#updateSize(seriesFolder, known, read);
      },
      () => {
        this.#evict(seriesFolder);
      },
    );
    return known;
  }

  #updateSize(seriesFolder: string, known: Known, manifest: Manifest): void {
    // If it was removed from memory in the meantime, it no longer counts.
    if (this.#known.get(seriesFolder) !== known) return;
    const lines = sizeOf(manifest);
    this.#lines += lines - known.lines;
    known.lines = lines;
    for (const folder of this.#known.keys()) {
      if (this.#lines <= this.mostLines || this.#known.size === 1) break;
      this.#evict(folder);
    }
  }

  #evict(seriesFolder: string): void {
    this.#lines -= this.#known.get(seriesFolder)?.lines ?? 0;
    this.#known.delete(seriesFolder);
  }
}

function sizeOf({ parquet, csv, zip, absences }: Manifest): number {
  const absent = absences.days().size + absences.months().size;
  return EMPTY_LINES + parquet.size + csv.size + zip.size + absent / ABSENCES_PER_LINE;
}

/**
 * Appends all lines in one write and syncs. First removes an incomplete last line that an earlier crash has left. `afterAppend`:
 * gives files that replace others their names, and removes superseded files.
 */
export async function appendManifest(
  seriesFolder: string,
  lines: readonly ManifestLine[],
  afterAppend?: () => Promise<void>,
): Promise<void> {
  await changeManifest(seriesFolder, async () => {
    if (lines.length > 0) await appendLines(seriesFolder, lines);
    await afterAppend?.();
  });
}

async function appendLines(seriesFolder: string, lines: readonly ManifestLine[]): Promise<void> {
  const { path, hasHardLinks } = await claimManifest(seriesFolder);
  if (hasHardLinks) await breakHardLink(path);
  const { O_APPEND, O_CREAT, O_RDWR } = constants;
  const file = await openRegularFile(path, O_APPEND | O_CREAT | O_RDWR);
  backingOf(path)?.wrote(path);
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
