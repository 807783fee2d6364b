/**
 * The folder of an export. A hidden folder in it has a JSON file for each file that export has made, with its sources and its recipe: it tells
 * whether the file is up to date, and whether it may be replaced.
 */
import { dirname, join, relative, sep } from 'node:path';
import { checkedFolder, entryAt, readRegularFile } from '../../files/path-checks.js';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { refuseForeignFile } from '../../files/own-file.js';
import { stagedBeside } from '../../files/temp-files.js';
import { publish } from '../../files/publish.js';
import { fileFacts } from '../../files/file-facts.js';
import { fieldsOf, parseJson } from '../../text/json.js';
import { createHash } from 'node:crypto';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { TOOL_VERSION } from '../../model/version.js';
import { MACROS, type ExportFile } from './export-file.js';
import type { ExportSelection } from './select-export.js';

/** The folder of the states, the lock and the staged files. */
export const OWN_FOLDER = '.cryptodl-export';

interface OutputState extends Provenance {
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
    provenance: Provenance,
  ): Promise<number> {
    const { bytes: size, sha256 } = await fileFacts(path);
    const bytes = rows === 0 ? 0 : size;
    const modifiedAt = (await stat(path)).mtimeMs;
    const replaces = await this.#digest();
    const state: OutputState = { v: 1, ...provenance, rows, bytes, sha256, modifiedAt, replaces };
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

export type Provenance = Readonly<ReturnType<typeof provenanceOf>>;

/** What a file is made from. */
export function provenanceOf(
  { sources, select, form }: ExportFile,
  { request, program, root }: ExportSelection,
) {
  // Files of the lake, relative to it.
  const files = sources.flatMap((source) =>
    source.files.map(({ path, sha256 }) => ({ file: relative(root, path).split(sep).join('/'), sha256 })),
  );
  const parts = sources.map(({ series, range: { from, to } }) => [series, from, to]);
  const range: Partial<DayRange> = sources[0]?.range ?? {};
  // Everything that decides the content.
  const recipe = JSON.stringify([MACROS, select, form, parts, files]);
  return {
    engine: program.name,
    recipe: createHash('sha256').update(recipe).digest('hex'),
    range,
    sources: files,
    at: new Date(request.clock.now()).toISOString(),
    tool: `cryptodl ${TOOL_VERSION}`,
  };
}
