/** The lines of a manifest. */
import type { ErrorCode } from './errors.js';
import type { AbsenceReason } from './absence-reasons.js';
import type { SourceObject, Cadence, Format, Period, Revision, Settings, ShortObject } from './task.js';
import type { RowFacts } from './outcome.js';

export interface ObjectLine extends RowFacts {
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

/** A file as its last commit left it. */
export interface FileBefore {
  readonly bytes: number;
  readonly sha256: string;
}

/** An object whose rows are no longer in its file. `repair` fetches it again, unless held objects cover its period. `at`: ISO. */
export interface DroppedLine {
  readonly v: 1;
  readonly kind: 'dropped';
  readonly key: string;
  readonly format: Format;
  readonly at: string;
  /** Settings of the file, if possibly no other line of the series has them. */
  readonly settings?: Settings;
}

/** A manifest line: consecutive periods of one cadence that are absent for one reason. */
export interface AbsentLine {
  readonly v: 1;
  readonly kind: 'absent';
  readonly cadence: Cadence;
  /** First and last period, included: `2024-01-15` or `2024-01`. */
  readonly first: string;
  readonly last: string;
  readonly reason: AbsenceReason;
  /** The object exists, but fetching it failed with this code. Earlier programs ignore this field and read the reason `hole`. */
  readonly failed?: ErrorCode;
  /**
   * A revision that was fetched and rejected. By default, the same program version does not fetch it again. The line then has
   * one period.
   */
  readonly refused?: RefusedRevision;
  /** The number of requests without result; `at`: the last of them, ISO. */
  readonly asked: number;
  readonly at: string;
  /** The same for requests to REST. The line may then have held periods that lack rows. */
  readonly rest?: { readonly asked: number; readonly at: string } & RestAnswer;
  readonly tool: string;
}

/** An answer of REST about the rows that the archive lacks. Without an answer, for example for a symbol that REST no longer knows, both are undefined. */
export interface RestAnswer {
  /** REST has no rows of the period. */
  readonly isEmpty?: true;
  /** The digest of the held object that lacks rows, of which REST has none. */
  readonly lacksToo?: string;
}

/** One version of an object and its sidecar in the listing. */
export interface RefusedRevision {
  readonly format: Format;
  readonly etag: string;
  /** Empty if the listing had no sidecar. */
  readonly sidecarEtag: string;
}

export type ManifestLine = ObjectLine | DroppedLine | AbsentLine;

/** Whether the rows came from REST. Rows that the archive publishes for the period replace them. */
export const isFromRest = ({ verified }: Pick<ObjectLine, 'verified'>): boolean => verified === 'rest';

/** Whether the time ranges of two objects do not overlap; false when a range is unknown, and for ends within one millisecond. */
export function areDisjoint(a: ObjectLine, b: ObjectLine): boolean {
  const [firstA, lastA, firstB, lastB] = [a.first, a.last, b.first, b.last].map((at) => Date.parse(at ?? ''));
  return (lastA ?? Number.NaN) < (firstB ?? 0) || (lastB ?? Number.NaN) < (firstA ?? 0);
}

export function revisionOf({ etag, lastModified, bytes, sha256, at }: Revision): Revision {
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
export function heldObject(line: ObjectLine, period: Period): SourceObject {
  const { from, to } = period;
  if (!isFromRest(line)) return { key: line.key, period, heldBytes: line.bytes };
  const mark = {
    ...(line.open === true ? { open: true as const } : {}),
    ...(line.insteadOf === undefined ? {} : { insteadOf: line.insteadOf }),
    ...(line.archiveFailed === undefined ? {} : { archiveFailed: line.archiveFailed }),
  };
  return { key: line.key, period, rest: { from, to, reasonIfEmpty: 'before-history', ...mark } };
}
