/** The files of the records and starts of runs in a lake. */
import { existsSync } from 'node:fs';
import { lstat, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, readStateNow } from '../../files/disk.js';
import { backingOf, bringIn } from '../../files/backing.js';
import { FOLDERS, type LakePaths } from '../../lake/layout.js';
import { publishText, removeFile } from '../../files/publish.js';
import { CryptodlError, unlessMissing } from '../../model/errors.js';
import { listText } from '../../model/units.js';
import { jsonText, shownPath } from '../../text/printable.js';
import { parseRun, parseStart, type RunRecord, type RunStart, type WrittenRun } from './run-record.js';

/** Records that a lake keeps, at most. */
const MOST_RECORDS = 1000;
/** A record has at most 240 points; it is about 60 kB. */
const MAX_BYTES = 4 * 1024 * 1024;

const FOLDER = `${FOLDERS.internal}/runs`;
const NAME = /^\d{8}T\d{9}Z-[0-9a-f]{8}\.json$/;
const START = /^\d{8}T\d{9}Z-[0-9a-f]{8}\.start\.json$/;
/** Starts that a lake keeps, at most. */
const MOST_STARTS = 100;

/** Writes the record and removes the oldest ones. Rejects with the error of the system, or with `disk` for a link. */
export async function writeRun(paths: LakePaths, run: WrittenRun): Promise<void> {
  const folder = await paths.folder(FOLDER);
  await publishText(paths.staging, join(folder, `${run.id}.json`), `${jsonText(run)}\n`);
  await prune(folder, NAME, MOST_RECORDS);
}

/** Writes the start of a run, or how it ended before its work. Rejects with the error of the system, or with `disk` for a link. */
export async function writeStart(paths: LakePaths, run: RunStart): Promise<void> {
  const folder = await paths.folder(FOLDER);
  await makeFolder(folder);
  // Not by way of the staging folder: a run that holds the lock may clear it.
  await writeFile(join(folder, `${run.id}.start.json`), `${jsonText(run)}\n`);
  await prune(folder, START, MOST_STARTS);
}

/** Rejects with the error of the system. */
export async function removeStart(paths: LakePaths, id: string): Promise<void> {
  await removeFile(join(await paths.folder(FOLDER), `${id}.start.json`));
}

/** The starts of runs without a record, oldest first. `torn`: the ids of those that cannot be read. Rejects like `readRuns`. */
export async function readStarts(
  paths: LakePaths,
): Promise<{ readonly starts: readonly RunStart[]; readonly torn: readonly string[] }> {
  const folder = await paths.folder(FOLDER);
  const starts: RunStart[] = [];
  const torn: string[] = [];
  for (const name of await newestFiles(folder, START, MOST_STARTS)) {
    const start = await readAs(parseStart, join(folder, name));
    const id = name.slice(0, -'.start.json'.length);
    if (start?.id === id) starts.push(start);
    // A run that ended meanwhile has removed its start.
    else if (existsSync(join(folder, name))) torn.push(id);
  }
  return { starts, torn };
}

/** Only files with these names are removed. A removed link keeps its target, and a folder stays. */
async function prune(folder: string, form: RegExp, most: number): Promise<void> {
  for (const name of (await namesOf(folder, form)).slice(0, -most)) {
    const path = join(folder, name);
    const facts = await unlessMissing(lstat(path));
    if (facts?.isDirectory() === false) await removeFile(path);
  }
}

/** Oldest first. */
async function namesOf(folder: string, form: RegExp): Promise<string[]> {
  const names = (await unlessMissing(readdir(folder))) ?? [];
  return names.filter((name) => form.test(name)).sort();
}

/** The names of the newest files of this form, oldest first. Those of a lake in a bucket are fetched. */
async function newestFiles(folder: string, form: RegExp, most: number): Promise<string[]> {
  await backingOf(folder)?.openFolders([folder]);
  const names = (await namesOf(folder, form)).slice(-most);
  await bringIn(...names.map((name) => join(folder, name)));
  return names;
}

/** Reads the newest records, oldest first. `warning`: a text about the files that are no records. Rejects with `disk` for a link in the path of their folder, and with errors of the system. */
export async function readRuns(paths: LakePaths, most = MOST_RECORDS) {
  const folder = await paths.folder(FOLDER);
  const runs: RunRecord[] = [];
  const unreadable: string[] = [];
  for (const name of await newestFiles(folder, NAME, most)) {
    const path = join(folder, name);
    const run = await readAs(parseRun, path);
    // The name decides about order and age, so a record under another name is not trusted.
    if (run !== undefined && `${run.id}.json` === name) runs.push(run);
    else unreadable.push(shownPath(path));
  }
  const warning =
    unreadable.length === 0 ? undefined : `no records of runs, left out: ${listText(unreadable, 3)}`;
  return { runs, warning };
}

/** Undefined for anything but a record in a regular file, and for a file that another run has just removed. */
async function readAs<Run>(parse: (content: unknown) => Run, path: string): Promise<Run | undefined> {
  try {
    if (!(await lstat(path)).isFile()) return undefined;
    return parse(JSON.parse(readStateNow(path, MAX_BYTES).toString('utf8')));
  } catch (error) {
    if (error instanceof CryptodlError) throw error;
    return undefined;
  }
}
