/** One fault in a lake, and the command that mends it. */
import { join } from 'node:path';
import { entryAt, isIrregular } from '../../files/path-checks.js';
import type { Format, Series } from '../../model/task.js';

export type LakeFindingKind =
  /** Manifest lines name a file that does not exist. */
  | 'missing'
  /** A file differs from its last commit. */
  | 'damaged'
  /** A file that no manifest line names. */
  | 'unlisted'
  | 'line-damaged'
  /** A manifest line that a later version of cryptodl wrote. */
  | 'line-newer'
  /** A symbolic link below the lake's root: it is not followed and not changed. */
  | 'link'
  /** A temporary file or an unfinished commit of a run that was killed. */
  | 'leftover'
  /** The file system refuses to read the file, or it is not a regular file. */
  | 'unreadable';

export interface LakeFinding {
  readonly kind: LakeFindingKind;
  /** Relative to the lake's root, with `/`. */
  readonly path: string;
  /** Line number in the manifest, from 1. */
  readonly line?: number;
  readonly text: string;
  readonly series?: Series;
  readonly format?: Format;
  /** Periods of the affected objects: `2024-01-15` or `2024-01`. */
  readonly periods?: readonly string[];
  /** The change that `--fix` made. */
  readonly done?: string;
  /** The command that mends the rest; undefined when nothing is left to do. */
  readonly left?: 'fix' | 'repair' | 'nothing-known';
}

export const NOT_IN_MANIFEST = 'no manifest line names this file';

/** The text of a pipe, a socket, a device or a folder in place of a file. */
export const NOT_REGULAR = 'it is not a regular file';

const REMEDIES: Readonly<Record<LakeFindingKind, NonNullable<LakeFinding['left']>>> = {
  missing: 'repair',
  damaged: 'fix',
  unlisted: 'fix',
  'line-damaged': 'fix',
  'line-newer': 'nothing-known',
  link: 'nothing-known',
  leftover: 'fix',
  unreadable: 'nothing-known',
};

/** The finding with the command that mends it. */
export function withRemedy(finding: LakeFinding): LakeFinding {
  return { ...finding, left: REMEDIES[finding.kind] };
}

/** `path` is relative to the lake's root. */
export function linkFinding(path: string, series?: Series): LakeFinding {
  const text = 'symbolic links inside a lake are not followed';
  return { kind: 'link', path, text, ...(series === undefined ? {} : { series }) };
}

/** The finding for a path that must be a regular file; another one if it is a pipe, socket, device or folder, which stays unopened. */
export async function asRegular(root: string, finding: LakeFinding): Promise<LakeFinding> {
  const { path, series } = finding;
  if (!isIrregular(await entryAt(join(root, path)))) return finding;
  return { kind: 'unreadable', path, text: NOT_REGULAR, ...(series === undefined ? {} : { series }) };
}
