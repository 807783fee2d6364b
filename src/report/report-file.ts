/** The file of a failure report: created with its first line. A report that replaces an earlier one is written beside it, and renamed when it is complete. */
import { constants, createReadStream } from 'node:fs';
import { access, lstat, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Stats } from 'node:fs';
import { makeFolder } from '../files/disk.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { jsonText } from '../text/printable.js';
import type { ReportHeader } from './read-failure-report.js';
import { isCutLine, isHeader, isLineBelow } from './read-failure-report.js';

export interface ReportFileOptions {
  readonly path: string;
  readonly header: Omit<ReportHeader, 'v' | 'kind'>;
  /**
   * `new`: a new name beside earlier reports. `overwrite`: the file that the user named.
   * `replace`: replaces an earlier report at the end of the run, also if no failure is left.
   */
  readonly mode: 'new' | 'overwrite' | 'replace';
  /** Path of the copy of a report that goes to a pipe. The copy is kept only if the reader leaves early. */
  readonly copyPath?: string;
  /** The cut last line of the earlier report. It stays the last line until a user removes it. */
  readonly cutLine?: string;
}

export interface ReportFile {
  /** Appends whole lines. The header precedes the first one. */
  append(lines: string): Promise<void>;
  /** The path of the report after `close`; undefined before the first line. */
  place(): string | undefined;
  /** Returns the path of the report, if there is one. A run that ends early keeps the report that it would replace. */
  close(isComplete: boolean): Promise<string | undefined>;
}

export function createReportFile(options: ReportFileOptions): ReportFile {
  const replaces = options.mode === 'replace';
  const target = options.path;
  let path = replaces ? partialPath(target) : target;
  let isStream = false;
  let copy: Opened | undefined;
  let hasReaderLeft = false;
  let file: Promise<FileHandle> | undefined;
  let tail = Promise.resolve();
  const start = async (): Promise<FileHandle> => {
    await makeFolder(dirname(path));
    const opened = options.mode === 'new' ? await openNew(path) : await openPath(path);
    ({ path, isStream } = opened);
    if (opened.isPipe && options.copyPath !== undefined) copy = await openCopy(options.copyPath);
    await write(opened.handle, `${jsonText({ v: 1, kind: 'header', ...options.header })}\n`);
    return opened.handle;
  };
  /** After the reader of a pipe has left, only the copy is written. */
  const write = async (handle: FileHandle, text: string): Promise<void> => {
    await copy?.handle.appendFile(text);
    if (hasReaderLeft) return;
    try {
      await handle.appendFile(text);
    } catch (error) {
      if (copy === undefined || errnoOf(error) !== 'EPIPE') throw error;
      hasReaderLeft = true;
    }
  };
  return {
    append: async (lines) => {
      const opened = await (file ??= start());
      const written = tail.then(() => write(opened, lines));
      tail = written;
      await written;
    },
    place: () => (file === undefined ? undefined : replaces ? target : path),
    close: async (isComplete) => {
      if (file === undefined && replaces) file = start();
      // A run without failures removes the report of an earlier run from the path that the user named.
      if (file === undefined && options.mode === 'overwrite' && isComplete) await removeReport(path);
      if (file === undefined) return undefined;
      const opened = await file;
      await tail;
      if (options.cutLine !== undefined) await write(opened, options.cutLine);
      if (!isStream) await opened.sync();
      await opened.close();
      await copy?.handle.close();
      if (copy !== undefined && hasReaderLeft) return copy.path;
      if (copy !== undefined) await rm(copy.path);
      if (replaces && isComplete) await rename(path, target);
      else if (replaces) await rm(path);
      return replaces ? target : path;
    },
  };
}

/** The temporary path of a report. */
export function partialPath(path: string): string {
  return `${path}.partial`;
}

async function removeReport(path: string): Promise<void> {
  if ((await kindOfPath(path)) === 'report') await rm(path, { force: true });
}

interface Opened {
  readonly path: string;
  readonly handle: FileHandle;
  /** The path is a pipe or a device. */
  readonly isStream: boolean;
  readonly isPipe: boolean;
}

/** Checks the path again, because hours may have passed since the run began. */
async function openPath(path: string): Promise<Opened> {
  const kind = await kindOfPath(path);
  const { O_WRONLY, O_NONBLOCK } = constants;
  // Without a reader, an ordinary open of a pipe waits forever.
  const first = kind === 'pipe' ? await openPipe(path, O_WRONLY | O_NONBLOCK) : undefined;
  try {
    const isStream = kind === 'pipe' || kind === 'device';
    return { path, handle: await open(path, isStream ? O_WRONLY : 'w'), isStream, isPipe: kind === 'pipe' };
  } finally {
    await first?.close();
  }
}

async function openPipe(path: string, flags: number): Promise<FileHandle> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (errnoOf(error) !== 'ENXIO') throw error;
    throw new CryptodlError(
      'disk',
      `nothing reads the pipe --failures ${path} (ENXIO): no report is written`,
      {
        hint: 'start the reader before the run, or choose a file',
      },
    );
  }
}

async function openCopy(path: string): Promise<Opened> {
  await makeFolder(dirname(path));
  return openNew(path);
}

/** A free name beside a report of the same second. */
async function openNew(path: string): Promise<Opened> {
  for (let copy = 1; ; copy += 1) {
    const candidate = copyName(path, copy);
    try {
      return { path: candidate, handle: await open(candidate, 'wx'), isStream: false, isPipe: false };
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    }
  }
}

/**
 * The file at the path of a report. `free`: none. `empty`: a file without content. `report`: an earlier report. `pipe` and
 * `device` are written to, but never replaced or removed.
 */
type PathKind = 'free' | 'empty' | 'report' | 'pipe' | 'device';

/** Throws a usage error for a file that is not a report. */
async function kindOfPath(path: string): Promise<PathKind> {
  const link = await statsOf(path, lstat);
  if (link === undefined) return 'free';
  // /dev/stderr and >(command) are links to pipes and devices.
  const target = link.isSymbolicLink() ? await statsOf(path, stat) : link;
  if (target?.isFIFO() === true) return 'pipe';
  if (target?.isCharacterDevice() === true) return 'device';
  // /dev/stderr of a service: no file can be created beside it in /dev.
  if (link.isSymbolicLink() && target?.isSocket() === true) throw refusal(path, 'is a socket');
  if (link.isSymbolicLink()) throw refusal(path, 'is a symbolic link, which is not followed');
  if (link.isDirectory()) throw refusal(path, 'is a folder');
  if (!link.isFile()) throw refusal(path, 'is neither a file nor a pipe nor a character device');
  if (link.size === 0) return 'empty';
  if (await isReport(path)) return 'report';
  throw refusal(path, 'is not a failure report, and is not replaced');
}

/** Throws a usage error if the path of the folder for reports is not a folder. */
export async function refuseBadFolder(folder: string): Promise<void> {
  const facts = await statsOf(folder, stat);
  if (facts === undefined || facts.isDirectory()) return;
  throw usage(
    `${folder} is not a folder, and failure reports are written into a folder of that name`,
    'move it, or choose a file with --failures FILE',
  );
}

/** Checks at the start of a run that the report can be written. Throws a usage error. */
export async function refuseBadPath(path: string): Promise<void> {
  const kind = await kindOfPath(path);
  try {
    await makeFolder(dirname(path));
    await access(kind === 'free' ? dirname(path) : path, constants.W_OK);
    // A service has no terminal, but the file /dev/tty exists. Only opening it shows this.
    if (kind === 'device') await (await open(path, constants.O_WRONLY | constants.O_NOCTTY)).close();
  } catch (error) {
    throw usage(
      `--failures ${path} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --failures, or leave it out',
    );
  }
}

async function statsOf(path: string, look: (path: string) => Promise<Stats>): Promise<Stats | undefined> {
  try {
    return await look(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw usage(
      `--failures ${path} cannot be checked (${reasonOf(errnoOf(error))})`,
      'choose another --failures, or leave it out',
    );
  }
}

function refusal(path: string, problem: string): Error {
  return usage(`--failures ${path} ${problem}`, 'choose a new file, or move the existing one');
}

/** `vision-….jsonl`, `vision-…-2.jsonl` and so on. */
function copyName(path: string, copy: number): string {
  return copy === 1 ? path : path.replace(/(\.\w+)?$/, `-${copy}$1`);
}

/** No line of a report is longer. The header is the longest: it has the options, and a command line limits their length. */
const MOST_LINE_CHARACTERS = 4 << 20;

/** Whether each line is a line of a report. Foreign lines below a report must not be lost. */
async function isReport(path: string): Promise<boolean> {
  let isFirst = true;
  let rest = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!(isFirst ? isHeader(line) : isLineBelow(line))) return false;
      isFirst = false;
    }
    if (rest.length > MOST_LINE_CHARACTERS) return false;
  }
  return isFirst ? isHeader(rest) : isLineBelow(rest) || isCutLine(rest);
}
