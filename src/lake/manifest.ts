/**
 * The manifest of a series: an append-only JSON Lines file, whose place `manifest-place.ts` knows. A line describes one source object
 * and the partition file that contains its rows; other lines record absent periods and dropped objects. Later lines supersede earlier ones.
 */
import { constants } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CryptodlError, withPath } from '../model/errors.js';
import type { Format } from '../model/task.js';
import { Absences } from './absences.js';
import { changeBackedManifest, openBackedSeries } from './backing.js';
import { createLineReader, NewerVersion } from './check-manifest-line.js';
import type { ObjectKeys } from './check-manifest-line.js';
import { claimManifest, openManifest } from './manifest-place.js';
import { openRegularFile } from './path-checks.js';
import { publish, syncDirectory } from './publish.js';
import { HeldObjects } from './held-objects.js';
import type { ManifestLine, PlainLine } from './manifest-line.js';
import { completeLinesLength, completeLinesOf } from './complete-lines.js';

/** Maximum number of gaps recorded for one object. */
export const MAX_GAPS = 100;

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
  for await (const lines of readLinesInto(manifest, seriesFolder, archive))
    for (const { line } of lines) if (line instanceof CryptodlError) throw line;
  return manifest;
}

/** A complete line of a manifest. */
interface ReadLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
  /** The error of a line that was not added. */
  readonly line: ManifestLine | PlainLine | CryptodlError;
}

/**
 * Adds all complete lines to `manifest` and yields them in batches. After a damaged line, the following lines still come. A missing file
 * has no lines; only `onTail` gets an incomplete last line.
 */
export async function* readLinesInto(
  manifest: Manifest,
  seriesFolder: string,
  archive: ObjectKeys,
  onTail?: (text: string) => void,
): AsyncGenerator<ReadLine[]> {
  const opened = await openManifest(seriesFolder);
  if (opened === undefined) return;
  const { file, path } = opened;
  const readLine = createLineReader(seriesFolder, archive);
  let number = 0;
  for await (const texts of completeLinesOf(file, path, onTail)) {
    yield texts.map((text) => {
      number += 1;
      try {
        const line = readLine(text);
        applyLine(manifest, line);
        return { number, text, line };
      } catch (error) {
        return { number, text, line: lineError(`${path} line ${number}`, error) };
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
  });
}

/** Adds a line. Throws `manifest-damaged` for a period that is no date of the calendar, and for an invalid `at` or `asked`. */
export function applyLine(manifest: Manifest, line: ManifestLine | PlainLine): void {
  if (line.kind === 'dropped') manifest[line.format].drop(line.key);
  else if (line.kind === 'absent') manifest.absences.add(line);
  else manifest[line.settings.format].add(line);
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
