/** Writes the rows of one file of an export. */
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import yazl from 'yazl';
import type { DuckDb } from '../../convert/duckdb.js';
import { quoteText } from '../../convert/sql.js';
import { checkedFolder, entryAt, openRegularFile, readRegularFile } from '../../files/path-checks.js';
import { CryptodlError, errnoOf, usage } from '../../model/errors.js';
import type { FileForm } from './export-file.js';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { makeFolder } from '../../files/disk.js';
import { refuseForeignFile } from '../../files/own-file.js';
import { stagedBeside } from '../../files/temp-files.js';
import { acquireLock } from '../../lake/lock.js';
import type { Lock, LockRequest } from '../../lake/lock.js';
import { fileFacts, publish } from '../../files/publish.js';
import { fieldsOf, parseJson } from '../../text/json.js';
import { reasonOf } from '../../text/path-faults.js';
import { shownPath } from '../../text/printable.js';

/**
 * Macros for the SQL of files.
 * - `num(x)`: the text of a number, with its digits as the lake has them and without exponent. Of a DOUBLE, these are the fewest digits that
 *   give the same DOUBLE again. A DECIMAL has 38 digits, so the digits behind the point depend on the size of the number.
 * - `stamp(t, form)`: a time in UTC by a pattern of strftime.
 * - `side(is_buyer_maker)`: the side of the taker.
 */
export const MACROS = String.raw`
CREATE OR REPLACE TEMP MACRO num(x) AS CASE
  WHEN NOT contains(lower(x::VARCHAR), 'e') THEN
    CASE typeof(x) WHEN 'VARCHAR' THEN x::VARCHAR ELSE regexp_replace(x::VARCHAR, '\.0$', '') END
  WHEN abs(x::DOUBLE) >= 1e15 THEN x::VARCHAR::DECIMAL(38, 0)::VARCHAR
  WHEN abs(x::DOUBLE) >= 1 THEN rtrim(rtrim(x::VARCHAR::DECIMAL(38, 18)::VARCHAR, '0'), '.')
  ELSE rtrim(rtrim(x::VARCHAR::DECIMAL(38, 37)::VARCHAR, '0'), '.') END;
CREATE OR REPLACE TEMP MACRO stamp(t, form) AS strftime(make_timestamp(epoch_us(t)), form);
CREATE OR REPLACE TEMP MACRO side(is_buyer_maker) AS CASE WHEN is_buyer_maker THEN 'sell' ELSE 'buy' END`;

/** Writes the rows of a SELECT to a file in `folder`. Resolves with its path, and the number of rows. */
export async function writeRows(
  duckdb: DuckDb,
  select: string,
  { copy, utc, member }: FileForm,
  folder: string,
): Promise<{ rows: number; path: string }> {
  const file = join(folder, 'rows');
  const [copied] = await duckdb.rows(`COPY (${select}) TO ${quoteText(file)} (${copy})`);
  const rows = Number(copied?.['Count']);
  if (utc !== undefined) await markAsUtc(file, utc);
  if (member === undefined) return { rows, path: file };
  const zip = join(folder, 'zip');
  await writeZip(file, member, zip);
  return { rows, path: zip };
}

/** The time of the member is that of the format's first day, so that equal rows give equal zips. */
async function writeZip(csv: string, member: string, path: string): Promise<void> {
  const zip = new yazl.ZipFile();
  zip.addReadStream(createReadStream(csv), member, {
    mtime: new Date(1980, 0, 1),
    // Without it, yazl also writes the time in UTC, which depends on the local time zone.
    forceDosTimestamp: true,
    mode: 0o100644,
  });
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(path, { flags: 'wx' }));
}

/** A file ends with the length of its footer in 4 bytes, and `PAR1`. */
const TAIL_BYTES = 8;

/**
 * The logical type of a column in the footer (thrift compact protocol): a TIMESTAMP with `isAdjustedToUTC` false, in nanoseconds. The third
 * byte is the boolean.
 */
const NANOSECONDS = [0x6c, 0x8c, 0x12, 0x1c, 0x3c, 0x00, 0x00, 0x00];
const IS_ADJUSTED = { at: 2, yes: 0x11 };

/**
 * Changes one byte of the footer: the column's times become UTC. DuckDB has no type for nanoseconds with a time zone, and readers need both.
 * Rejects with `bug` for a file without exactly one such column.
 */
async function markAsUtc(path: string, column: string): Promise<void> {
  const file = await openRegularFile(path, constants.O_RDWR);
  try {
    const { size } = await file.stat();
    const tail = Buffer.alloc(TAIL_BYTES);
    await file.read(tail, 0, TAIL_BYTES, size - TAIL_BYTES);
    const length = tail.readUInt32LE(0);
    const start = size - TAIL_BYTES - length;
    const footer = Buffer.alloc(length);
    await file.read(footer, 0, length, start);
    const name = Buffer.from(column);
    const wanted = Buffer.concat([Buffer.of(name.length), name, Buffer.from(NANOSECONDS)]);
    const found = footer.indexOf(wanted);
    if (found < 0 || footer.includes(wanted, found + 1))
      throw new CryptodlError(
        'bug',
        `the footer of ${path} does not have one column ${column} in nanoseconds`,
      );
    const at = start + found + 1 + name.length + IS_ADJUSTED.at;
    await file.write(Buffer.of(IS_ADJUSTED.yes), 0, 1, at);
  } finally {
    await file.close();
  }
}

// The folder of an export. For each file that export has made, a hidden folder has a JSON file with its sources and its recipe: it tells whether
// the file is up to date, and whether it may be replaced.

/** The folder of the states, the lock and the staged files. */
const OWN_FOLDER = '.cryptodl-export';

export interface Origin {
  readonly engine: string;
  /** The digest of everything that decides the content: the SELECT, the form, the range, and the sources. */
  readonly recipe: string;
  readonly range: Partial<DayRange>;
  /** Files of the lake, relative to it, with their digests. */
  readonly sources: readonly { readonly file: string; readonly sha256: string }[];
  /** ISO. */
  readonly at: string;
  readonly tool: string;
}

interface OutputState extends Origin {
  readonly v: 1;
  /** 0 rows: there is no file. */
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** The digest of the file that was there before: after a kill it may still be there. */
  readonly replaces?: string | undefined;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
}

/** Makes the target, and locks it. Rejects with `locked`, with a usage error for a place that cannot be written, and with `disk` for a symbolic link. */
export async function lockTarget(target: string, request: Omit<LockRequest, 'command'>): Promise<Lock> {
  try {
    await makeFolder(target);
    const folder = await checkedFolder(target, OWN_FOLDER);
    return await acquireLock(folder, { command: 'cryptodl export', ...request });
  } catch (error) {
    if (error instanceof CryptodlError) throw error;
    throw usage(
      `--target ${shownPath(target)} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --target',
    );
  }
}

/** A place in the target. Each export makes a new one. */
export class Output {
  private constructor(
    readonly target: string,
    readonly path: string,
    readonly statePath: string,
    /** Undefined without a state of this version that can be read. A file at this place then is not ours. */
    readonly state: OutputState | undefined,
  ) {}

  /** `file`: relative to the target, with `/`. Rejects with `disk` for a symbolic link on the way. */
  static async open(target: string, file: string): Promise<Output> {
    const own = `${OWN_FOLDER}/${file}.json`;
    for (const path of [file, own]) await checkedFolder(target, dirname(path));
    const text = await readRegularFile(join(target, own));
    const state: Partial<OutputState> = fieldsOf(parseJson(text ?? '{}'));
    const known = state.v === 1 ? (state as OutputState) : undefined;
    return new Output(target, join(target, file), join(target, own), known);
  }

  /** Whether the file was made by this recipe, and has not changed since. */
  async isMadeBy(recipe: string): Promise<boolean> {
    const { state } = this;
    if (state?.recipe !== recipe) return false;
    return (await this.#digest()) === (state.rows === 0 ? undefined : state.sha256);
  }

  /** Rejects with a usage error if the file must stay: a link, a folder, or without `force` a file that export did not write. */
  async refuseForeign(force: boolean): Promise<void> {
    await refuseForeignFile({
      flag: 'target',
      path: this.path,
      what: 'an unchanged file of cryptodl export',
      isOwn: async () => {
        const digest = await this.#digest();
        return digest !== undefined && [this.state?.sha256, this.state?.replaces].includes(digest);
      },
      force,
    });
  }

  /** Calls `act` with a new folder for staged files, and removes it. Removes those of killed exports. */
  async staging<T>(act: (folder: string) => Promise<T>): Promise<T> {
    const folder = await stagedBeside(join(this.target, OWN_FOLDER, 'file'));
    try {
      await mkdir(folder);
      return await act(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /**
   * Gives a staged file its name; without rows, there is no file. Its state comes first and names the file before too, so that after a
   * kill either of them is ours. Resolves with its size in bytes.
   */
  async publish(
    { path, rows }: { readonly path: string; readonly rows: number },
    origin: Origin,
  ): Promise<number> {
    const { bytes: size, sha256 } = await fileFacts(path);
    const bytes = rows === 0 ? 0 : size;
    const modifiedAt = (await stat(path)).mtimeMs;
    const replaces = await this.#digest();
    const state: OutputState = { v: 1, ...origin, rows, bytes, sha256, modifiedAt, replaces };
    const stagedState = join(dirname(path), 'state');
    await writeFile(stagedState, `${JSON.stringify(state)}\n`, { flag: 'wx' });
    await publish(stagedState, this.statePath);
    if (rows > 0) await publish(path, this.path);
    else await rm(this.path, { force: true });
    return bytes;
  }

  /** The digest of the present file, undefined without one. Its bytes are read if its size or its time of change is another one. */
  async #digest(): Promise<string | undefined> {
    const entry = await entryAt(this.path);
    if (entry === undefined) return undefined;
    const { bytes, modifiedAt, sha256 } = this.state ?? {};
    const isSame = entry.isFile() && entry.size === bytes && entry.mtimeMs === modifiedAt;
    return isSame ? sha256 : (await fileFacts(this.path)).sha256;
  }
}
