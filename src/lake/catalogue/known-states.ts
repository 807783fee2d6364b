/**
 * The states of series as an earlier command computed them, in `.cryptodl/states.json`. They count while everything that they were computed from is
 * unchanged: the terms, the program, and the size, inode and times of the manifest, of the folders with the files, and of files that
 * commits replaced. A file of this kind that is missing, damaged or of another program is ignored, and a lake that cannot be written has none.
 */
import { hash } from 'node:crypto';
import { constants, lstatSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkedFolder, openRegularFile, readRegularFile } from '../../files/path-checks.js';
import { backingOf } from '../../files/backing.js';
import { FOLDERS } from '../layout.js';
import { TOOL_VERSION } from '../../model/version.js';
import type { SeriesStates } from './day-states.js';

const NAME = 'states.json';

/** The states of a series in each range, and what they were computed from. */
interface KnownSeries {
  /** A digest of the terms. */
  readonly terms: string;
  /** Relative to the root of the lake. */
  readonly paths: readonly string[];
  /** A digest of the facts of the paths. */
  readonly facts: string;
  readonly states: readonly (readonly SeriesStates[])[];
}

/** The times of a file system have steps. A change in the step of a reading may leave the time as it was. */
const LONGEST_STEP_NS = 100_000_000n;
/** A file system with steps of a millisecond or more does not tell enough changes apart. */
const COARSE_NS = 1_000_000n;

export class KnownStates {
  readonly #root: string;
  readonly #folder: string;
  readonly #before: ReadonlyMap<string, KnownSeries>;
  readonly #now = new Map<string, KnownSeries>();
  /** The time of the file system before the first reading; undefined if the lake keeps no states. */
  #start: Promise<bigint | undefined> | undefined;
  #isNew = false;

  private constructor(root: string, folder: string, before: ReadonlyMap<string, KnownSeries>) {
    this.#root = root;
    this.#folder = folder;
    this.#before = before;
  }

  /** Undefined for a lake in a bucket. */
  static async open(root: string): Promise<KnownStates | undefined> {
    if (backingOf(root) !== undefined) return undefined;
    try {
      const folder = await checkedFolder(root, FOLDERS.internal);
      return new KnownStates(root, folder, parsed(await readRegularFile(join(folder, NAME))));
    } catch {
      return undefined;
    }
  }

  /** The states of a series that were computed with these terms; undefined if something has changed since. Call `begin` before it is read then. */
  of(name: string, terms: string): KnownSeries['states'] | undefined {
    const known = this.#before.get(name);
    if (known?.terms !== digestOf(terms) || factsOf(this.#root, known.paths)?.digest !== known.facts)
      return undefined;
    this.#now.set(name, known);
    return known.states;
  }

  /** Call before the first reading of a series. */
  async begin(): Promise<void> {
    this.#start ??= this.#timeOfFiles();
    await this.#start;
  }

  /** `paths`: what the states were computed from. States are not kept if a path may have changed since `begin`. */
  async add(
    name: string,
    terms: string,
    { paths, states }: { readonly paths: readonly string[]; readonly states: KnownSeries['states'] },
  ): Promise<void> {
    const start = await this.#start;
    const own = paths.map((path) => relative(this.#root, path));
    const facts = factsOf(this.#root, own);
    if (start === undefined || facts === undefined || facts.changed + LONGEST_STEP_NS >= start) return;
    // JSON has no infinite numbers: those of a series without days.
    if (!states.flat().every(({ own: { from, to } }) => Number.isFinite(from) && Number.isFinite(to))) return;
    this.#now.set(name, { terms: digestOf(terms), paths: own, facts: facts.digest, states });
    this.#isNew = true;
  }

  /** Replaces the file, if there is something new. A failure is no error. */
  async save(): Promise<void> {
    if ((await this.#start) === undefined) return;
    try {
      if (!this.#isNew) {
        await rm(this.#staged());
        return;
      }
      const text = JSON.stringify([...this.#now]);
      await this.#writeStaged(`${headOf(text)}\n${text}`);
      await rename(this.#staged(), join(this.#folder, NAME));
    } catch {
      // The next command computes the states again.
    }
  }

  #staged(): string {
    return join(this.#folder, `${NAME}.partial`);
  }

  /** Resolves with its time. Two commands may write it at the same time; the digest in its first line tells. */
  async #writeStaged(text: string): Promise<bigint> {
    const { O_WRONLY, O_CREAT, O_TRUNC } = constants;
    const file = await openRegularFile(this.#staged(), O_WRONLY | O_CREAT | O_TRUNC);
    try {
      await file.writeFile(`${text}\n`);
      return (await file.stat({ bigint: true })).mtimeNs;
    } finally {
      await file.close();
    }
  }

  async #timeOfFiles(): Promise<bigint | undefined> {
    try {
      const time = await this.#writeStaged('');
      return time % COARSE_NS === 0n ? undefined : time;
    } catch {
      return undefined;
    }
  }
}

/** The first line: the program and the digest of the other line. A build of the same version with another rule is another program. */
function headOf(text: string): string {
  const { mtimeMs, size } = lstatSync(fileURLToPath(import.meta.url));
  return JSON.stringify({ version: TOOL_VERSION, build: [mtimeMs, size], sha256: digestOf(text) });
}

function parsed(text: string | undefined): ReadonlyMap<string, KnownSeries> {
  const [head = '', body = ''] = text?.split('\n') ?? [];
  if (head !== headOf(body)) return new Map();
  return new Map(JSON.parse(body) as [string, KnownSeries][]);
}

/** The facts of paths as a digest, and the last change of one of them; undefined if one is missing. The calls block, because they take microseconds. */
function factsOf(root: string, paths: readonly string[]): { digest: string; changed: bigint } | undefined {
  let changed = 0n;
  const facts: string[] = [];
  try {
    for (const path of paths) {
      const { ino, size, mtimeNs, ctimeNs } = lstatSync(join(root, path), { bigint: true });
      facts.push(`${ino} ${size} ${mtimeNs} ${ctimeNs}`);
      for (const time of [mtimeNs, ctimeNs]) if (time > changed) changed = time;
    }
  } catch {
    return undefined;
  }
  return { digest: digestOf(facts.join('\n')), changed };
}

/** The SHA-256 digest of a text, in hexadecimal digits. */
export function digestOf(text: string): string {
  return hash('sha256', text);
}
