/**
 * The folder of an export. For each file that export has made, a hidden folder has a JSON file with its sources and its recipe: it tells whether
 * the file is up to date, and whether it may be replaced.
 */
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../files/disk.js';
import { refuseForeignFile } from '../files/own-file.js';
import { stagedBeside } from '../files/temp-files.js';
import { acquireLock } from '../lake/lock.js';
import type { Lock, LockRequest } from '../lake/lock.js';
import { checkedFolder, entryAt, readRegularFile } from '../lake/path-checks.js';
import { fileFacts, publish } from '../lake/publish.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import { fieldsOf, parseJson } from '../text/json.js';
import { reasonOf } from '../text/path-faults.js';
import { shownPath } from '../text/printable.js';

/** The folder of the states, the lock and the staged files. */
const OWN_FOLDER = '.cryptodl-export';

/** How a file was made. */
export interface OutputState {
  readonly v: 1;
  readonly engine: string;
  /** The digest of everything that decides the content: the SELECT, the form, the range, and the sources. */
  readonly recipe: string;
  /** Files of the lake, relative to it, with their digests. */
  readonly sources: readonly { readonly file: string; readonly sha256: string }[];
  /** 0 rows: there is no file. */
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  /** The digest of the file that was there before: after a kill it may still be there. */
  readonly replaces?: string;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
  /** ISO. */
  readonly at: string;
  readonly tool: string;
}

/** Makes the target, and locks it. Rejects with `locked`, with a usage error for a place that cannot be written, and with `disk` for a symbolic link. */
export async function lockTarget(target: string, request: Omit<LockRequest, 'command'>): Promise<Lock> {
  try {
    await makeFolder(target);
    return await acquireLock(await checkedFolder(target, OWN_FOLDER), {
      command: 'cryptodl export',
      ...request,
    });
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'locked')
      throw new CryptodlError('locked', `another export is writing to ${shownPath(target)}`, {
        cause: error,
        hint: 'wait until it has ended, or choose another --target',
      });
    if (error instanceof CryptodlError) throw error;
    throw usage(
      `--target ${shownPath(target)} cannot be written (${reasonOf(errnoOf(error))})`,
      'choose another --target',
    );
  }
}

/** A place in the target. Each export makes a new one. */
export class Output {
  readonly #target: string;
  readonly #file: string;
  /** Undefined without a state that can be read. A file at this place then is not ours. */
  readonly state: OutputState | undefined;

  private constructor(target: string, file: string, state: OutputState | undefined) {
    this.#target = target;
    this.#file = file;
    this.state = state;
  }

  /** `file`: relative to the target, with `/`. Rejects with `disk` for a symbolic link on the way. */
  static async open(target: string, file: string): Promise<Output> {
    for (const path of [file, stateOf(file)]) await checkedFolder(target, dirname(path));
    return new Output(target, file, readState(await readRegularFile(join(target, stateOf(file)))));
  }

  get path(): string {
    return join(this.#target, this.#file);
  }

  /** A new path for a staged file. Removes those of killed exports. */
  stagedPath(): Promise<string> {
    return stagedBeside(join(this.#target, OWN_FOLDER, 'file'));
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

  /** Gives a staged file its name; without rows, there is no file. Its state comes first and names the file before too, so that after a kill either of them is ours. */
  async publish(staged: string, state: OutputState): Promise<void> {
    const replaces = await this.#digest();
    const stagedState = await this.stagedPath();
    const all = { ...state, ...(replaces === undefined ? {} : { replaces }) };
    try {
      await writeFile(stagedState, `${JSON.stringify(all)}\n`, { flag: 'wx' });
      await publish(stagedState, join(this.#target, stateOf(this.#file)));
    } finally {
      await rm(stagedState, { force: true });
    }
    if (state.rows > 0) await publish(staged, this.path);
    else await rm(this.path, { force: true });
  }

  /** The digest of the present file, undefined without one. Its bytes are read if its size or its time of change is another one. */
  async #digest(): Promise<string | undefined> {
    const { path, state } = this;
    const entry = await entryAt(path);
    if (entry === undefined) return undefined;
    const isSame = entry.isFile() && entry.size === state?.bytes && entry.mtimeMs === state.modifiedAt;
    return isSame ? state.sha256 : (await fileFacts(path)).sha256;
  }
}

function stateOf(file: string): string {
  return `${OWN_FOLDER}/${file}.json`;
}

/** Undefined for anything else than a state of this version. */
function readState(text = ''): OutputState | undefined {
  const state: Partial<OutputState> = fieldsOf(parseJson(text));
  const isRight =
    state.v === 1 &&
    /^[0-9a-f]{64}$/.test(state.sha256 ?? '') &&
    [state.rows, state.bytes, state.modifiedAt].every((value) => Number(value) >= 0);
  return isRight ? (state as OutputState) : undefined;
}
