/** The lines of a manifest. Absences are in `absences.ts`. */
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
  /** The check of the bytes: sidecar, ETag of the listing, or only the CRC of the zip; rows from REST are checked one by one. */
  readonly verified: 'sidecar' | 'etag' | 'crc' | 'rest';
  /** The period was not over when its rows were requested. */
  readonly open?: true;
  /** The revision of the same object that was held before. */
  readonly replaces?: Revision;
  /** A later revision that was rejected because it lacks held rows. */
  readonly shorter?: Revision & { readonly rows: number };
  /** The digest in the sidecar, if it differs although size and ETag match the listing. */
  readonly staleSidecar?: string;
  /** Rows come from REST because requests to the archive failed with this code. Later runs request the archive again. */
  readonly archiveFailed?: ErrorCode;
  /** The incomplete revision of the archive object that these rows of REST replace. */
  readonly insteadOf?: ShortObject;
  /** A monthly object that lacks whole days; its daily objects were not checked yet. */
  readonly daysPending?: true;
  /** Rows of this object in the file; absent for zip. */
  readonly rows?: number;
  /** ISO instants of the first and last row, by time. */
  readonly first?: string;
  readonly last?: string;
  /** Exact duplicates within the object that were dropped. */
  readonly duplicates?: number;
  /** Rows that share an id or a bar with another row of the object but differ in values, and rows of bars outside the period. The file has all of them. */
  readonly idConflicts?: number;
  /** Times of missing rows, in datasets with rows at regular intervals: ISO instants `[from, to)`, ascending, at most `MAX_GAPS`. */
  readonly gaps?: readonly (readonly [string, string])[];
  /** Relative to the folder of the series; for zip, relative to the root of the lake. */
  readonly file: string;
  readonly fileBytes: number;
  readonly fileSha256: string;
  /** Rows of the whole file after this commit; absent for zip. */
  readonly fileRows?: number;
  readonly settings: Settings;
  /** Time of the commit, ISO. */
  readonly at: string;
  readonly tool: string;
}

/** An object whose rows are no longer in its file. `repair` fetches it again, unless held objects cover its period. */
export interface DroppedLine {
  readonly v: 1;
  readonly kind: 'dropped';
  readonly key: string;
  readonly format: Format;
  readonly at: string;
  /** Settings of the file, if possibly no other line of the series has them. */
  readonly settings?: Settings;
}

export type ManifestLine = ObjectLine | DroppedLine | AbsentLine;
