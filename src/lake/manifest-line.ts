/** The lines of a manifest. Absences are in `absences.ts`. */
import type { ErrorCode } from '../model/errors.js';
import type {
  ArchiveObject,
  Cadence,
  Format,
  Period,
  Revision,
  Settings,
  ShortObject,
} from '../model/task.js';
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
  /**
   * The check of the bytes: sidecar, ETag of the listing, or only the CRC of the zip; rows from REST are checked one by one. `lake`: rows
   * that the program made from other rows of the lake; `sha256` is then the digest of the rule and of the files of these rows.
   */
  readonly verified: 'sidecar' | 'etag' | 'crc' | 'rest' | 'lake';
  /** The rows from which the program made these rows, for example `klines 1m`. Only with `verified` `lake`. */
  readonly source?: string;
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
  /**
   * Rows that share the key or the bar of another row of the object but differ in values, and rows of bars outside the period. The file has all of
   * them; of the rows of one key, the first published one comes first.
   */
  readonly idConflicts?: number;
  /** Columns of the object that this version does not know. The file lacks them. */
  readonly newColumns?: readonly string[];
  /** Rows with values that cannot be right, by kind. The file has them. */
  readonly suspicious?: readonly Suspicious[];
  /** The ids of the rows, in datasets whose ids leave out none. Absent if the ids are not known. */
  readonly ids?: IdFacts | undefined;
  /** Times of missing rows, in datasets with rows at regular intervals: ISO instants `[from, to)`, ascending, at most `MAX_GAPS`. */
  readonly gaps?: readonly (readonly [string, string])[];
  /** Relative to the folder of the series; for zip, relative to the root of the lake. */
  readonly file: string;
  readonly fileBytes: number;
  readonly fileSha256: string;
  /** Rows of the whole file after this commit; absent for zip. */
  readonly fileRows?: number;
  /** The file of the same name that the commit of this line replaces. While it is still there, the commit has not happened, and the line does not count. */
  readonly fileBefore?: FileBefore;
  readonly settings: Settings;
  /** Time of the commit, ISO. */
  readonly at: string;
  readonly tool: string;
}

/**
 * The ids of an object, which go on in the next one. Scheduled rows have minutes since 1970 in their place: `first` is the minute after that of
 * the row that must come before the first one, and `last` that of the last row.
 */
export interface IdFacts {
  readonly first: number;
  readonly last: number;
  /** Ids between the first and the last that no row has. */
  readonly missing?: number;
  /** Rows whose range of trade ids overlaps that of another row before it: the same trades under new ids. */
  readonly overlapping?: number;
}

/**
 * Rows of an object with values that cannot be right. `order`: high or low against open or close. `zero`: a price of 0 or below. `negative`: a
 * volume. `constant`: one value for a whole day.
 */
export interface Suspicious {
  readonly kind: SuspiciousKind;
  readonly rows: number;
  /** Time and values of the first row. */
  readonly first: string;
}

export const SUSPICIOUS_KINDS = ['order', 'zero', 'negative', 'constant'] as const;
type SuspiciousKind = (typeof SUSPICIOUS_KINDS)[number];

/** A file as its last commit left it. */
export interface FileBefore {
  readonly bytes: number;
  readonly sha256: string;
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

/** Maximum number of gaps recorded for one object. */
export const MAX_GAPS = 100;

/** Whether the rows came from REST. Rows that the archive publishes for the period replace them. */
export function isFromRest({ verified }: Pick<ObjectLine, 'verified'>): boolean {
  return verified === 'rest';
}

/** The revision of the object in a line. */
export function heldRevision({ etag, lastModified, bytes, sha256, at }: ObjectLine): Revision {
  return {
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
    bytes,
    sha256,
    at,
  };
}

/**
 * The archive object of a line, without its size and ETag, which may have changed upstream. Rows from REST are requested from
 * REST again.
 */
export function heldObject(line: ObjectLine, period: Period): ArchiveObject {
  const { from, to } = period;
  if (!isFromRest(line)) return { key: line.key, period, heldBytes: line.bytes };
  const mark = {
    ...(line.open === true ? { open: true as const } : {}),
    ...(line.insteadOf === undefined ? {} : { insteadOf: line.insteadOf }),
    ...(line.archiveFailed === undefined ? {} : { archiveFailed: line.archiveFailed }),
  };
  return { key: line.key, period, rest: { from, to, reasonIfEmpty: 'before-history', ...mark } };
}
