/** What is not as it should be in a lake, one thing at a time. */
import type { Format, Series } from '../model/task.js';

export type FindingKind =
  /** Manifest lines whose file is not there. */
  | 'missing'
  /** A file that is not what was committed. */
  | 'damaged'
  /** A file like ours that no manifest line names. */
  | 'unlisted'
  | 'line-damaged'
  /** A manifest line that a later cryptodl wrote. */
  | 'line-newer'
  /** A series' folder with files and without a manifest. */
  | 'no-manifest'
  /** The file beside a zip that names its digest is not there, or names another one. */
  | 'sidecar'
  /** A file that is nothing of ours. */
  | 'stranger'
  /** A symbolic link below the lake's root: it is not followed, and left as it is. */
  | 'link'
  /** What a run that is gone left behind. */
  | 'leftover'
  /** Nobody can say: the file system does not let us read it. */
  | 'unreadable'
  /** The archive has another revision of a held object. */
  | 'revised'
  /** The archive has a held object no more. */
  | 'withdrawn'
  /** The archive's sidecar names another digest than the held object has. */
  | 'stale-digest';

export interface Finding {
  readonly kind: FindingKind;
  /** Relative to the lake's root, with `/`; for objects of the archive their key. */
  readonly path: string;
  /** Of the manifest, from 1. */
  readonly line?: number;
  readonly text: string;
  readonly series?: Series;
  readonly format?: Format;
  /** Objects that it is about: `2024-01-15` or `2024-01`. */
  readonly periods?: readonly string[];
  /** What `--fix` did about it. */
  readonly done?: string;
  /** What is left to be done about it, if it is more than nothing. */
  readonly left?: 'fix' | 'repair' | 'nothing-known';
}

/** What helps against each, before anything was done. */
export const REMEDIES: Readonly<Record<FindingKind, NonNullable<Finding['left']>>> = {
  missing: 'repair',
  damaged: 'fix',
  unlisted: 'fix',
  'line-damaged': 'fix',
  'line-newer': 'nothing-known',
  'no-manifest': 'fix',
  sidecar: 'fix',
  stranger: 'fix',
  link: 'nothing-known',
  leftover: 'fix',
  unreadable: 'nothing-known',
  revised: 'repair',
  withdrawn: 'nothing-known',
  'stale-digest': 'nothing-known',
};

/** By its place below the root. */
export function linkFinding(path: string, series?: Series): Finding {
  const text = 'it is a symbolic link, which is not followed inside a lake';
  return { kind: 'link', path, text, ...(series === undefined ? {} : { series }) };
}
