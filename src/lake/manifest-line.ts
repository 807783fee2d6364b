/** What a manifest says, line by line. */
import type { ErrorCode } from '../model/errors.js';
import type { Cadence, Format, Revision, Settings, ShortObject } from '../model/task.js';
import type { AbsentLine } from './absences.js';

export interface ObjectLine {
  readonly v: 1;
  readonly kind: 'object';
  readonly key: string;
  readonly cadence: Cadence;
  /** `2024-01-15` or `2024-01`. */
  readonly period: string;
  readonly etag?: string;
  readonly lastModified?: string;
  readonly bytes: number;
  readonly sha256: string;
  /** What vouched for the bytes: the sidecar, the listing's ETag, or only the zip's own CRC; REST's rows are looked at one by one. */
  readonly verified: 'sidecar' | 'etag' | 'crc' | 'rest';
  /** The period was not over when its rows were asked for. */
  readonly open?: true;
  /** The revision of the same object that was held before. */
  readonly replaces?: Revision;
  /** A later revision that has fewer rows than this one, and was not taken for that. */
  readonly shorter?: Revision & { readonly rows: number };
  /** The sidecar names another digest, but size and ETag are those of the listing: the sidecar's digest. */
  readonly staleSidecar?: string;
  /** REST's rows, taken because the archive did not answer: how it failed. Runs ask the archive until it does. */
  readonly archiveFailed?: ErrorCode;
  /** REST's rows stand in for this revision of the archive's object, which lacks those in its gaps. */
  readonly insteadOf?: ShortObject;
  /** A monthly object that lacks whole days: whether its daily objects have them was not found out yet. */
  readonly daysPending?: true;
  /** Rows of this object in the file; absent for zip. */
  readonly rows?: number;
  /** ISO instants of the first and last row, by time. */
  readonly first?: string;
  readonly last?: string;
  /** Exact duplicates within the object that were dropped. */
  readonly duplicates?: number;
  /** Rows with the id of another row of the object and other values: all of them are in the file. */
  readonly idConflicts?: number;
  /** Where rows of a regular grain are missing: ISO instants `[from, to)`, ascending, the first `MOST_GAPS` of them. */
  readonly gaps?: readonly (readonly [string, string])[];
  /** Relative to the series' folder; for zip to the lake's root. */
  readonly file: string;
  readonly fileBytes: number;
  readonly fileSha256: string;
  /** Rows of the whole file after this commit; absent for zip. */
  readonly fileRows?: number;
  readonly settings: Settings;
  /** When it was committed, ISO. */
  readonly at: string;
  readonly tool: string;
}

/** An object whose rows are no longer in its file; `repair` asks for what is not held since. */
export interface DroppedLine {
  readonly v: 1;
  readonly kind: 'dropped';
  readonly key: string;
  readonly format: Format;
  readonly at: string;
  /** How it was written, where no other line of the series may tell. */
  readonly settings?: Settings;
}

export type ManifestLine = ObjectLine | DroppedLine | AbsentLine;
