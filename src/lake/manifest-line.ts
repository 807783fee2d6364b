/** The lines of a manifest, and a fast reader of the most frequent ones. Absences are in `absences.ts`. */
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

/** The fields of an object that plans and coverage read for each held object. */
export type LineFacts = Pick<
  ObjectLine,
  | 'key'
  | 'cadence'
  | 'period'
  | 'verified'
  | 'open'
  | 'archiveFailed'
  | 'daysPending'
  | 'gaps'
  | 'insteadOf'
  | 'sha256'
  | 'rows'
  | 'ids'
  | 'idConflicts'
  | 'suspicious'
  | 'first'
  | 'last'
  | 'duplicates'
  | 'file'
  | 'fileBytes'
  | 'settings'
>;

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

// A fast reader of lines of objects in Parquet and CSV files, without rare fields, in the form in which the program writes them. It takes
// less than a quarter of the time of `JSON.parse` and the check of each field. `check-manifest-line.ts` reads all other lines.

const COUNT = '0|[1-9]\\d{0,14}';
const DIGEST = '[0-9a-f]{64}';
const INSTANT =
  '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?Z';
/** A text without escapes; a label has no control characters either, and up to 256 characters. */
const TEXT = '[^"\\\\\\u0000-\\u001f]*';
const LABEL = '[^"\\\\\\u0000-\\u001f\\u007f-\\u009f]{0,256}';

/** The line with a value for each field, in the order in which the program writes them. `*` marks the captured fields. */
const FORM: readonly (readonly [before: string, value: string, mark?: '*'])[] = [
  ['\\{"v":1,"kind":"object","key":"', TEXT, '*'],
  ['","cadence":"', 'daily|monthly', '*'],
  ['","period":"', TEXT, '*'],
  ['","etag":"', LABEL],
  ['","lastModified":"', LABEL],
  ['","bytes":', COUNT],
  [',"sha256":"', DIGEST],
  ['","verified":"', 'sidecar|etag|crc|rest|lake', '*'],
  // Whether these are settings is checked later. A JSON object has no longer text that begins with another object.
  ['","settings":', '\\{[^{}]*\\}', '*'],
  [',"at":"', INSTANT, '*'],
  ['","tool":"', LABEL],
  ['","rows":', COUNT, '*'],
  [',"first":"', INSTANT, '*'],
  ['","last":"', INSTANT, '*'],
  ['","duplicates":', COUNT, '*'],
  ['', `(?:,"ids":\\{"first":(${COUNT}),"last":(${COUNT})\\})?`],
  [',"file":"', TEXT, '*'],
  ['","fileBytes":', COUNT, '*'],
  [',"fileSha256":"', DIGEST, '*'],
  ['","fileRows":', COUNT],
];

/** The last field of a line whose commit replaces a file. */
const BEFORE = `,"fileBefore":\\{"bytes":(${COUNT}),"sha256":"(${DIGEST})"\\}`;
const PLAIN_LINE = new RegExp(
  `^${FORM.map(([before, value, mark]) => `${before}(${mark === '*' ? '' : '?:'}${value})`).join('')}(?:${BEFORE})?\\}$`,
);

/** Fields that are parts of the text of a line. */
type Parts = Pick<ObjectLine, 'at' | 'first' | 'last' | 'ids' | 'fileSha256'> & {
  readonly fileBefore?: FileBefore | undefined;
};

/** The fields of a line that say where it belongs. */
export type LinePlace = Pick<ObjectLine, 'key' | 'cadence' | 'period' | 'file' | 'settings'>;

/** A checked line of the most frequent form. It keeps its text, and reads its other fields when they are asked for. */
export class PlainLine implements LineFacts {
  readonly kind = 'object';
  readonly cadence: ObjectLine['cadence'];
  readonly period: string;
  readonly verified: ObjectLine['verified'];
  readonly settings: Settings;
  readonly file: string;
  readonly fileBytes: number;
  readonly rows: number;
  readonly duplicates: number;
  /** The text until the fields are read. */
  #line: string | ObjectLine;
  /** They share the memory of the text. */
  #parts: Parts;

  constructor({ cadence, period, file, settings }: LinePlace, match: RegExpExecArray) {
    this.cadence = cadence;
    this.period = period;
    this.verified = match[4] as ObjectLine['verified'];
    this.settings = settings;
    this.file = file;
    this.fileBytes = Number(match[14]);
    this.rows = Number(match[7]);
    this.duplicates = Number(match[10]);
    this.#line = match[0];
    this.#parts = partsOf(match);
  }

  /** All fields; the same object for each call. */
  get line(): ObjectLine {
    // JSON.parse makes texts of their own. Parts of the text of the line would keep all of it in memory.
    if (typeof this.#line === 'string') {
      this.#line = Object.assign(JSON.parse(this.#line) as ObjectLine, { settings: this.settings });
      this.#parts = this.#line;
    }
    return this.#line;
  }

  get key(): string {
    return this.line.key;
  }

  get sha256(): string {
    return this.line.sha256;
  }

  get first(): string {
    return this.#parts.first ?? '';
  }

  get last(): string {
    return this.#parts.last ?? '';
  }

  get at(): string {
    return this.#parts.at;
  }

  get fileSha256(): string {
    return this.#parts.fileSha256;
  }

  get ids(): IdFacts | undefined {
    return this.#parts.ids;
  }

  get fileBefore(): FileBefore | undefined {
    return this.#parts.fileBefore;
  }
}

// Each line of a lake comes here, and patterns with rests would take as long as all the rest, so the captured fields have their numbers.

/** An undefined field instead of an absent one gives all parts one shape. */
function partsOf(match: RegExpExecArray): Parts {
  const { 6: at = '', 8: first = '', 9: last = '', 11: firstId, 15: fileSha256 = '', 16: bytes } = match;
  return {
    at,
    first,
    last,
    fileSha256,
    ids: firstId === undefined ? undefined : { first: Number(firstId), last: Number(match[12]) },
    fileBefore: bytes === undefined ? undefined : { bytes: Number(bytes), sha256: match[17] ?? '' },
  };
}

export interface PlainChecks {
  /** Undefined for a text that is no settings. */
  readonly settingsOf: (text: string) => Settings | undefined;
  /** One text for equal texts. */
  readonly fileOf: (text: string) => string;
  readonly isRight: (place: LinePlace) => boolean;
}

/** Reads a line of the most frequent form; undefined for other lines, and where the checks refuse its settings or its place. */
export function readPlainLine(
  text: string,
  { settingsOf, fileOf, isRight }: PlainChecks,
): PlainLine | undefined {
  const match = PLAIN_LINE.exec(text);
  if (match === null) return undefined;
  const { 1: key = '', 2: cadence, 3: period = '', 13: file = '' } = match;
  const settings = settingsOf(match[5] ?? '');
  if (settings === undefined) return undefined;
  const place = { key, cadence: cadence as ObjectLine['cadence'], period, file: fileOf(file), settings };
  return isRight(place) ? new PlainLine(place, match) : undefined;
}
