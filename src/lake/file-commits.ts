/** The commits of each file of a series, and which of them did not happen. */
import type { ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { fileSize } from '../files/publish.js';
import { commitOf, pathOf, digestOf } from './undone-commits.js';

/** The commits of each file of a series, in the order of the manifest. */
export class FileCommits {
  /** A line of each commit. */
  readonly #byFile = new Map<string, ObjectLine[]>();

  add(line: ManifestLine): void {
    if (line.kind !== 'object') return;
    const commits = this.#byFile.get(line.file) ?? [];
    this.#byFile.set(line.file, commits);
    const last = commits.at(-1);
    if (last === undefined || commitOf(last) !== commitOf(line)) commits.push(line);
  }

  /** The commits that are neither that of the file which is there, nor lead to it. */
  async undone(seriesFolder: string): Promise<ReadonlySet<string>> {
    const undone = new Set<string>();
    for (const commits of this.#byFile.values()) {
      if (commits.every(({ fileBefore }) => fileBefore === undefined)) continue;
      const done = commitsUpTo(await presentCommit(seriesFolder, commits), commits);
      for (const commit of commits.map(commitOf)) if (!done.has(commit)) undone.add(commit);
    }
    return undone;
  }
}

/** The index of the last commit whose file is there; of the last commit, if the file is missing or another one. */
async function presentCommit(seriesFolder: string, commits: readonly ObjectLine[]): Promise<number> {
  const [first] = commits;
  const path = first === undefined ? '' : pathOf(seriesFolder, first);
  const size = await fileSize(path);
  const ofSize = commits.filter(({ fileBytes }) => fileBytes === size);
  const digests = new Set(ofSize.map(({ fileSha256 }) => fileSha256));
  const [digest] = digests.size > 1 ? [await digestOf(path)] : digests;
  const found = commits.findLastIndex(
    ({ fileBytes, fileSha256 }) => fileBytes === size && fileSha256 === digest,
  );
  return found < 0 ? commits.length - 1 : found;
}

/** A commit with those before it, by the files that they replace. */
function commitsUpTo(index: number, commits: readonly ObjectLine[]): ReadonlySet<string> {
  const done = new Set<string>();
  for (let at = index; at >= 0;) {
    const commit = commits[at];
    if (commit === undefined) break;
    done.add(commitOf(commit));
    const { fileBefore } = commit;
    const earlier = commits.slice(0, at);
    // The last commit before the first file of a name is that of a file that is gone.
    const before = earlier.findLastIndex(({ fileSha256 }) => fileSha256 === fileBefore?.sha256);
    at = fileBefore === undefined ? at - 1 : before;
  }
  return done;
}
