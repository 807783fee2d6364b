/** Partition files that no manifest line names. A run leaves them, but readers of the folder read their rows too. */
import { relative, sep } from 'node:path';
import type { Manifest } from '../lake/manifest.js';
import { isPartitionFile } from '../lake/path-checks.js';
import { listEntries } from '../lake/walk-lake.js';
import { FORMATS } from '../model/task.js';
import { countText } from '../model/units.js';
import { lakeFlag, shownPath } from '../text/printable.js';

export class UnlistedFiles {
  readonly #root: string;
  readonly #found = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  async look(folder: string, manifest: Manifest): Promise<void> {
    const { files } = await listEntries(folder);
    const isNamed = (name: string): boolean =>
      FORMATS.some((format) => manifest[format].bytesOf(name) !== undefined);
    const inLake = relative(this.#root, folder).replaceAll(sep, '/');
    for (const name of files)
      if (!isNamed(name) && isPartitionFile(name)) this.#found.add(`${inLake}/${name}`);
  }

  /** A line for people; undefined if there are none. */
  text(): string | undefined {
    const [first] = this.#found;
    if (first === undefined) return undefined;
    const more = this.#found.size - 1;
    const names = `${shownPath(first)}${more === 0 ? '' : ` and ${countText(more, 'more file')}`}`;
    return `no manifest line names ${names}: readers of the folder may count rows twice; cryptodl verify --fix${lakeFlag(this.#root)} adopts such files or moves them to the quarantine`;
  }
}
