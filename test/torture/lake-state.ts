/** A lake after a crash, as readers see it that share nothing with the product, and what must be true of it. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parquetMetadata, readParquet } from '../helpers/lake.js';

/** Rows of one file as texts, in their order. */
type Rows = readonly string[];

interface HeldLine {
  readonly kind: 'object' | 'dropped' | 'absent';
  readonly key: string;
  readonly sha256: string;
  readonly rows: number;
  readonly file: string;
  readonly fileSha256: string;
  readonly fileBefore?: { readonly sha256: string };
  readonly at: string;
}

export interface LakeState {
  /** Everything below the lake's root, folders too. */
  readonly tree: readonly string[];
  /** By path. */
  readonly files: ReadonlyMap<string, Rows>;
  /** By key; `file` is relative to the lake. */
  readonly held: ReadonlyMap<string, HeldLine>;
  /** Digests of the files, by path. */
  readonly digests: ReadonlyMap<string, string>;
  /** Series whose commit is written down to be finished, with the rows that it will bring. */
  readonly pending: ReadonlyMap<string, Rows>;
}

const MANIFEST = /^_manifests\/(.*)\.jsonl$/;
const OWN = '.cryptodl';

/** Throws when a visible Parquet file cannot be read whole, or when a manifest has a damaged line before its last. */
export async function readLake(lake: string): Promise<LakeState> {
  const found = existsSync(lake) ? (readdirSync(lake, { recursive: true }) as string[]).sort() : [];
  // The folder `tmp` is emptied by every run, and only made anew by one that writes. Each run that ends leaves a record, and a signal can leave a dump.
  const tree = found.filter(
    (path) =>
      path !== join(OWN, 'tmp') &&
      !path.startsWith(join(OWN, 'runs')) &&
      !path.startsWith(join(OWN, 'debug-')),
  );
  const files = new Map<string, Rows>();
  const digests = new Map<string, string>();
  const held = new Map<string, HeldLine>();
  for (const path of tree) {
    if (path.startsWith(OWN)) continue;
    if (path.endsWith('.parquet')) {
      files.set(path, await rowsOf(join(lake, path)));
      digests.set(path, digestOf(join(lake, path)));
    }
  }
  for (const path of tree) {
    const [, series] = MANIFEST.exec(path) ?? [];
    if (series !== undefined) addHeld(held, digests, join(lake, path), series);
  }
  return { tree, files, digests, held, pending: await pendingCommits(lake) };
}

const known = new Map<string, Rows>();

/** A file that was read once is not read again. */
async function rowsOf(file: string): Promise<Rows> {
  const digest = digestOf(file);
  const before = known.get(digest);
  if (before !== undefined) return before;
  const read = await readParquet(file).catch((error: unknown) => {
    throw new Error(`${file} cannot be read`, { cause: error });
  });
  const { num_rows: count } = await parquetMetadata(file);
  if (read.length !== Number(count)) throw new Error(`${file} has ${read.length} of its ${count} rows`);
  const rows = read.map((row) =>
    JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
  );
  known.set(digest, rows);
  return rows;
}

function digestOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

/**
 * A kill may tear the last line; nothing else may be broken. Lines do not count while the file that they replace is still there, nor if a later commit
 * replaced the same file.
 */
function addHeld(
  held: Map<string, HeldLine>,
  digests: ReadonlyMap<string, string>,
  manifest: string,
  series: string,
): void {
  const whole = readFileSync(manifest, 'utf8').split('\n').slice(0, -1);
  const lines = whole.map((text) => JSON.parse(text) as HeldLine);
  for (const [at, line] of lines.entries()) {
    if (line.kind === 'absent') continue;
    const { file, fileBefore } = line;
    const isPending = fileBefore !== undefined && digests.get(join(series, file)) === fileBefore.sha256;
    const isReplaced = (later: HeldLine): boolean =>
      later.file === file && later.at !== line.at && later.fileBefore?.sha256 === fileBefore?.sha256;
    if (isPending || (fileBefore !== undefined && lines.slice(at).some(isReplaced))) continue;
    if (line.kind === 'dropped') held.delete(line.key);
    else held.set(line.key, { ...line, file: join(series, line.file) });
  }
}

interface Journal {
  readonly lake: { inode: string };
  readonly series: string;
  readonly publications: readonly { readonly staged: string; readonly target: string }[];
}

/** Makes a copy of a lake the lake that it is a copy of, as if the file system itself had been set back. */
export function becomeOriginal(lake: string): void {
  const own = join(lake, OWN);
  for (const name of journalsIn(own)) {
    const journal = JSON.parse(readFileSync(join(own, name), 'utf8')) as Journal;
    journal.lake.inode = String(statSync(own, { bigint: true }).ino);
    writeFileSync(join(own, name), JSON.stringify(journal));
  }
}

function journalsIn(own: string): string[] {
  return existsSync(own) ? readdirSync(own).filter((name) => /^commit-.*\.json$/.test(name)) : [];
}

async function pendingCommits(lake: string): Promise<Map<string, Rows>> {
  const own = join(lake, OWN);
  const pending = new Map<string, Rows>();
  for (const name of journalsIn(own)) {
    const journal = JSON.parse(readFileSync(join(own, name), 'utf8')) as Journal;
    const staged = journal.publications
      .map(({ staged: file }) => join(own, 'tmp', file))
      .filter((path) => existsSync(path));
    pending.set(journal.series, (await Promise.all(staged.map((path) => rowsOf(path)))).flat());
  }
  return pending;
}

/** What no crash may do, whenever it came. `before` is the lake as the crashed run found it. */
export function brokenPromises(state: LakeState, before: LakeState): string[] {
  const broken: string[] = [];
  const visible = bySeries(state);
  for (const [series, rows] of visible) {
    const twice = rows.length - new Set(rows).size;
    // The files that a commit replaces by others go last, also if the next command must remove them.
    if (twice > 0 && !state.pending.has(series)) broken.push(`${twice} rows of ${series} are seen twice`);
  }
  for (const line of state.held.values()) {
    if (state.pending.has(dirname(line.file))) continue;
    const day = line.key.slice(-'YYYY-MM-DD.zip'.length, -'.zip'.length);
    const rows = state.files.get(line.file)?.filter((row) => row.includes(`"create_time":"${day}`)) ?? [];
    if (rows.length !== line.rows)
      broken.push(`${line.file} has ${rows.length} rows of ${line.key}, the manifest says ${line.rows}`);
  }
  for (const [series, rows] of [...bySeries(before), ...before.pending]) {
    const left = new Set([...(visible.get(series) ?? []), ...(state.pending.get(series) ?? [])]);
    const lost = rows.filter((row) => !left.has(row)).length;
    if (lost > 0) broken.push(`${lost} rows of ${series} that were there before are gone`);
  }
  return broken;
}

function bySeries(state: LakeState): Map<string, string[]> {
  const series = new Map<string, string[]>();
  for (const [file, rows] of state.files) {
    series.set(dirname(file), [...(series.get(dirname(file)) ?? []), ...rows]);
  }
  return series;
}

/** None: the same rows in the same files and order, said to be there, and not a file or folder more. */
export function differences(state: LakeState, undisturbed: LakeState): string[] {
  return [
    ...rowDifferences(state, undisturbed),
    ...state.tree.filter((path) => !undisturbed.tree.includes(path)).map((path) => `${path} is left over`),
    ...undisturbed.tree.filter((path) => !state.tree.includes(path)).map((path) => `${path} is missing`),
  ];
}

export function rowDifferences(state: LakeState, undisturbed: LakeState): string[] {
  const found: string[] = [];
  for (const file of new Set([...state.files.keys(), ...undisturbed.files.keys()])) {
    const wanted = undisturbed.files.get(file) ?? [];
    const rows = state.files.get(file) ?? [];
    const wrong = wanted.findIndex((row, index) => row !== rows[index]);
    if (wrong >= 0 || rows.length !== wanted.length)
      found.push(
        `${file} has ${rows.length} rows instead of ${wanted.length}, row ${wrong} is the first wrong one`,
      );
  }
  const said = (lake: LakeState): string =>
    [...lake.held.values()]
      .map(({ key, sha256, rows, file }) => JSON.stringify({ key, sha256, rows, file }))
      .sort()
      .join('\n');
  if (said(state) !== said(undisturbed)) found.push(`the manifest says other things:\n${said(state)}`);
  return found;
}
