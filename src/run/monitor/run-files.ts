/** The files of the records and starts of runs in a lake. */
import { existsSync } from 'node:fs';
import { lstat, readdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeFolder, readStateNow } from '../../files/disk.js';
import { backingOf, bringIn } from '../../files/backing.js';
import { FOLDERS, type LakePaths } from '../../lake/layout.js';
import { publishText, removeFile } from '../../files/publish.js';
import { CryptodlError, unlessMissing } from '../../model/errors.js';
import { listText } from '../../model/units.js';
import { jsonText, shownPath } from '../../text/printable.js';
import { parseRun, parseStart, type RunRecord, type RunStart, type WrittenRun } from './run-record.js';

/** A record has at most 240 points; it is about 60 kB. */
const MAX_BYTES = 4 * 1024 * 1024;

const FOLDER = `${FOLDERS.internal}/runs`;
const ID = /^\d{8}T\d{9}Z-[0-9a-f]{8}$/;

/** The file of a run is its id with the ending. `most`: files that a lake keeps. */
interface Kind<Content> {
  readonly ending: string;
  readonly most: number;
  readonly parse: (content: unknown) => Content;
}

const RECORDS: Kind<RunRecord> = { ending: '.json', most: 1000, parse: parseRun };
const STARTS: Kind<RunStart> = { ending: '.start.json', most: 100, parse: parseStart };

/** Writes the record and removes the oldest ones. Rejects with the error of the system, or with `disk` for a link. */
export async function writeRun(paths: LakePaths, run: WrittenRun): Promise<void> {
  const folder = await paths.folder(FOLDER);
  await publishText(paths.staging, join(folder, `${run.id}.json`), `${jsonText(run)}\n`);
  await prune(folder, RECORDS);
}

/** Writes the start of a run, or how it ended before its work. Rejects with the error of the system, or with `disk` for a link. */
export async function writeStart(paths: LakePaths, run: RunStart): Promise<void> {
  const folder = await paths.folder(FOLDER);
  await makeFolder(folder);
  // Not by way of the staging folder: a run that holds the lock may clear it.
  await writeFile(join(folder, `${run.id}.start.json`), `${jsonText(run)}\n`);
  await prune(folder, STARTS);
}

/** Rejects with the error of the system. */
export async function removeStart(paths: LakePaths, id: string): Promise<void> {
  await removeFile(join(await paths.folder(FOLDER), `${id}.start.json`));
}

/** The starts of runs without a record, oldest first. `torn`: the ids of those that cannot be read. Rejects like `readRuns`. */
export async function readStarts(paths: LakePaths) {
  const { sound: starts, others } = await readNewest(paths, STARTS);
  // A run that ended meanwhile has removed its start.
  const torn = others.filter((path) => existsSync(path)).map((path) => basename(path, STARTS.ending));
  return { starts, torn };
}

/** Only files with these names are removed. A removed link keeps its target, and a folder stays. */
async function prune(folder: string, kind: Kind<unknown>): Promise<void> {
  for (const name of (await namesOf(folder, kind)).slice(0, -kind.most)) {
    const path = join(folder, name);
    const facts = await unlessMissing(lstat(path));
    if (facts?.isDirectory() === false) await removeFile(path);
  }
}

/** Oldest first. */
async function namesOf(folder: string, { ending }: Kind<unknown>): Promise<string[]> {
  const names = (await unlessMissing(readdir(folder))) ?? [];
  return names.filter((name) => name.endsWith(ending) && ID.test(basename(name, ending))).sort();
}

/** Reads the newest records, oldest first. `warning`: a text about the files that are no records. Rejects with `disk` for a link in the path of their folder, and with errors of the system. */
export async function readRuns(paths: LakePaths, most = RECORDS.most) {
  const { sound: runs, others } = await readNewest(paths, RECORDS, most);
  const warning =
    others.length === 0 ? undefined : `no records of runs, left out: ${listText(others.map(shownPath), 3)}`;
  return { runs, warning };
}

/** The contents of the newest files of a kind, oldest first, and the paths of those that cannot be read. The files of a lake in a bucket are fetched. */
async function readNewest<Content extends { readonly id: string }>(
  paths: LakePaths,
  kind: Kind<Content>,
  most = kind.most,
) {
  const folder = await paths.folder(FOLDER);
  await backingOf(folder)?.openFolders([folder]);
  const files = (await namesOf(folder, kind)).slice(-most).map((name) => join(folder, name));
  await bringIn(...files);
  const [sound, others]: [Content[], string[]] = [[], []];
  for (const path of files) {
    const content = await readAs(kind.parse, path);
    // The name decides about order and age, so content under another name is not trusted.
    if (content?.id === basename(path, kind.ending)) sound.push(content);
    else others.push(path);
  }
  return { sound, others };
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
