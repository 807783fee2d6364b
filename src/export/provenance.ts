/**
 * The record of an export: a line for each written file with its sources. It tells which files are up to date, and which files may be replaced.
 * It lies in a hidden folder of the target, which no reader of the files looks into.
 */
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder, writeAllChunks } from '../files/disk.js';
import { completeLines, completeLinesLength } from '../lake/complete-lines.js';
import { checkedFolder, entryAt, irregularText, openRegularFile } from '../lake/path-checks.js';
import { fileFacts, publish } from '../lake/publish.js';
import { CryptodlError } from '../model/errors.js';
import { isPlainKey } from '../model/lake-address.js';
import { shownPath } from '../text/printable.js';
import { fieldsOf, parseJson } from '../text/json.js';

/** The folder of the record, the lock and the staged files. */
export const EXPORT_FOLDER = '.cryptodl-export';
const RECORD = 'files.jsonl';
const STAGING = `${EXPORT_FOLDER}/tmp`;

export interface FileLine {
  readonly v: 1;
  readonly engine: string;
  /** Relative to the target, with `/`. */
  readonly file: string;
  /** The digest of everything that decides the content: the rule, the range, and the sources. */
  readonly madeFrom: string;
  /** Files of the lake, relative to it, with their digests. */
  readonly sources: readonly { readonly file: string; readonly sha256: string }[];
  /** The days `[from, to)` of the rows, as dates. */
  readonly from: string;
  readonly to: string;
  /** 0 rows: there is no file. */
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
  /** ISO. */
  readonly at: string;
  readonly tool: string;
}

export class Provenance {
  readonly #target: string;
  readonly #path: string;
  /** All lines of each file: a killed export may have written a line and not the file. */
  readonly #lines = new Map<string, FileLine[]>();
  #count = 0;

  private constructor(target: string) {
    this.#target = target;
    this.#path = join(target, EXPORT_FOLDER, RECORD);
  }

  /** Reads the record. `warn` is called if lines cannot be read; their files then count as foreign. */
  static async open(
    target: string,
    { isWritten, warn }: { readonly isWritten: boolean; readonly warn: (message: string) => void },
  ): Promise<Provenance> {
    const record = new Provenance(target);
    let wrong = 0;
    for await (const lines of completeLines(record.#path))
      for (const text of lines) {
        const line = readLine(text);
        if (line === undefined) wrong += 1;
        else record.#add(line);
      }
    // Writing to it would change the other file too.
    if (isWritten && ((await entryAt(record.#path))?.nlink ?? 1) > 1)
      await record.#rewrite([...record.#lines.values()].flat());
    if (wrong > 0)
      warn(
        `${shownPath(record.#path)} has ${wrong} unreadable line${wrong === 1 ? '' : 's'}; --force replaces the files that they name`,
      );
    return record;
  }

  #add(line: FileLine): void {
    this.#count += 1;
    const lines = this.#lines.get(line.file);
    if (lines === undefined) this.#lines.set(line.file, [line]);
    else lines.push(line);
  }

  /** The line of the file that is there. An earlier one if the last file was not published. Undefined if no line matches. */
  async presentOf(file: string): Promise<FileLine | undefined> {
    for (const line of (this.#lines.get(file) ?? []).toReversed()) if (await this.isIntact(line)) return line;
    return undefined;
  }

  /** Whether the file of a line is there. Size and time of change decide; if the time differs, its bytes decide. */
  async isIntact(line: FileLine): Promise<boolean> {
    const path = join(this.#target, line.file);
    const entry = await entryAt(path);
    if (line.rows === 0) return entry === undefined;
    if (entry?.isFile() !== true || entry.size !== line.bytes) return false;
    return isSameTime(entry, line) || (await fileFacts(path)).sha256 === line.sha256;
  }

  /** Why the place of a file must stay as it is; undefined if the file can be written. `force`: also if export did not write what is there. */
  async problemOf(file: string, force: boolean): Promise<string | undefined> {
    const elsewhere = 'move it away, or choose another --target';
    try {
      await checkedFolder(this.#target, dirname(file));
    } catch (error) {
      if (!(error instanceof CryptodlError)) throw error;
      return `${error.message}; ${elsewhere}`;
    }
    const path = join(this.#target, file);
    const entry = await entryAt(path);
    if (entry === undefined) return undefined;
    const problem = entry.isSymbolicLink() ? 'it is a symbolic link' : irregularText(entry);
    if (problem !== undefined) return `${shownPath(path)} cannot be replaced: ${problem}; ${elsewhere}`;
    return force || (await this.presentOf(file)) !== undefined
      ? undefined
      : 'export did not write this file, or another program has changed it since; --force replaces it';
  }

  /** Appends a line and syncs the record. Call before the file gets its name. */
  async append(line: FileLine): Promise<void> {
    const file = await openRegularFile(this.#path, constants.O_RDWR | constants.O_CREAT);
    try {
      const { size } = await file.stat();
      const length = await completeLinesLength(file, size);
      if (length < size) await file.truncate(length);
      await writeAllChunks(file, [Buffer.from(`${JSON.stringify(line)}\n`)], length);
      await file.datasync();
    } finally {
      await file.close();
    }
    this.#add(line);
  }

  /** Removes superseded lines of files that match their last line, if most lines are superseded. */
  async compact(): Promise<void> {
    if (this.#count < 2 * this.#lines.size + LEAST_SUPERSEDED) return;
    const kept: FileLine[] = [];
    for (const lines of this.#lines.values()) {
      const last = lines.at(-1);
      const needed = last !== undefined && (await this.isIntact(last)) ? [last] : lines;
      kept.push(...needed);
    }
    await this.#rewrite(kept);
  }

  async #rewrite(lines: readonly FileLine[]): Promise<void> {
    const staged = join(this.#target, EXPORT_FOLDER, `${RECORD}.partial`);
    await rm(staged, { force: true });
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    await writeFile(staged, text, { flag: 'wx' });
    await publish(staged, this.#path);
  }
}

const LEAST_SUPERSEDED = 100;

/** Some file systems keep whole seconds only. */
function isSameTime({ mtimeMs }: Stats, { modifiedAt }: FileLine): boolean {
  return Math.abs(mtimeMs - modifiedAt) < 1;
}

/** Undefined for anything else than a line of this version. */
function readLine(text: string): FileLine | undefined {
  const line: Partial<FileLine> = fieldsOf(parseJson(text));
  const isRight =
    line.v === 1 &&
    typeof line.file === 'string' &&
    isPlainKey(line.file) &&
    [line.madeFrom, line.from, line.to].every((value) => typeof value === 'string') &&
    Array.isArray(line.sources) &&
    line.sources.every((source) => typeof source?.file === 'string') &&
    /^[0-9a-f]{64}$/.test(line.sha256 ?? '') &&
    [line.rows, line.bytes].every((value) => Number.isSafeInteger(value) && Number(value) >= 0) &&
    typeof line.modifiedAt === 'number';
  return isRight ? (line as FileLine) : undefined;
}

/** Makes the folder of staged files, empty. Rejects with `disk` for a symbolic link on its way. */
export async function emptyStaging(target: string): Promise<string> {
  const staging = await removeStaging(target);
  await makeFolder(staging);
  return staging;
}

/** Call only with the lock of the target. Resolves with the path of the folder. Rejects with `disk` for a symbolic link on its way. */
export async function removeStaging(target: string): Promise<string> {
  const staging = await checkedFolder(target, STAGING);
  await rm(staging, { recursive: true, force: true });
  return staging;
}
