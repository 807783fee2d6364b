/** Appends lines to the manifest of a series. */
import { constants } from 'node:fs';
import { copyFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { withPath } from '../model/errors.js';
import { backingOf, changeManifest } from '../files/backing.js';
import { claimManifest } from './manifest-place.js';
import { openRegularFile } from '../files/path-checks.js';
import { publish, syncDirectory } from '../files/publish.js';
import type { ManifestLine } from '../model/manifest-line.js';
import { completeLinesLength } from './complete-lines.js';

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
