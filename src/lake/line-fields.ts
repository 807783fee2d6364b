/** The fields of each kind of manifest line, and the checks of their values. */
import { FALLBACK_CODES } from '../model/errors.js';
import { ABSENCE_REASONS } from '../model/absence-reasons.js';
import { FORMATS } from '../model/task.js';
import { areSettings } from '../model/settings-schema.js';
import { SUSPICIOUS_KINDS } from '../model/outcome.js';
import type { ManifestLine } from '../model/manifest-line.js';
import { isLabel, isRecord } from '../text/json.js';
import { CADENCES } from './object-keys.js';
import { DIGEST, INSTANT } from './plain-line.js';

type Check = (value: unknown) => boolean;
type Fields = Readonly<Record<string, unknown>>;
type Checks = Readonly<Record<string, Check>>;

/** The first needed or optional field that is wrong; undefined if none is. */
export function fieldProblem(record: Fields, needed: Checks, optional: Checks = {}): string | undefined {
  for (const name in needed) if (needed[name]?.(record[name]) !== true) return `"${name}" is wrong`;
  for (const name in optional)
    if (record[name] !== undefined && optional[name]?.(record[name]) !== true) return `"${name}" is wrong`;
  return undefined;
}

function fields(needed: Checks, optional?: Checks): Check {
  return (value) => isRecord(value) && fieldProblem(value, needed, optional) === undefined;
}

function listOf(isRight: Check): Check {
  return (value) => Array.isArray(value) && value.every((one) => isRight(one));
}

function oneOf(...values: readonly string[]): Check {
  const known = new Set<unknown>(values);
  return (value) => known.has(value);
}

function textOf(pattern: string): Check {
  const whole = new RegExp(`^${pattern}$`);
  return (value) => typeof value === 'string' && whole.test(value);
}

/** From 2000 to 2199, because readers iterate over all days of an absence. */
export const isSupportedPeriod = (period: unknown): boolean =>
  typeof period === 'string' && period >= '2000' && period < '2200';

const isText: Check = (value) => typeof value === 'string';
const isLabelText: Check = (value) => typeof value === 'string' && isLabel(value);
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isDigest = textOf(DIGEST);
const isInstant = textOf(INSTANT);
const isCadence = oneOf(...CADENCES);
const isFormat = oneOf(...FORMATS);
const isGap: Check = (value) => Array.isArray(value) && value.length === 2 && value.every(isInstant);
const areGaps = listOf(isGap);
const FILE: Checks = { bytes: isCount, sha256: isDigest };
const TAGS: Checks = { etag: isLabelText, lastModified: isLabelText };
const SHORTER: Checks = { ...FILE, rows: isCount };
const SUSPICIOUS: Checks = { kind: oneOf(...SUSPICIOUS_KINDS), rows: isCount, first: isLabelText };

const OF_SOME_IDS: Checks = {
  range: fields({ first: isCount, last: isCount }),
  missing: isCount,
  overlapping: isCount,
  silent: listOf(oneOf('begin', 'end')),
};

const OBJECT: Checks = {
  key: isText,
  cadence: isCadence,
  period: isText,
  sha256: isDigest,
  fileSha256: isDigest,
  settings: areSettings,
  verified: oneOf('sidecar', 'etag', 'crc', 'rest', 'lake'),
  bytes: isCount,
  fileBytes: isCount,
  at: isInstant,
};

const OF_SOME_OBJECTS: Checks = {
  ...TAGS,
  staleSidecar: isLabelText,
  tool: isLabelText,
  source: isLabelText,
  archiveFailed: (value) => FALLBACK_CODES.has(value),
  rows: isCount,
  fileRows: isCount,
  fileBefore: fields(FILE),
  duplicates: isCount,
  idConflicts: isCount,
  ids: fields({ first: isCount, last: isCount }, OF_SOME_IDS),
  newColumns: listOf(isLabelText),
  suspicious: listOf(fields(SUSPICIOUS)),
  first: isInstant,
  last: isInstant,
  gaps: areGaps,
  replaces: fields(FILE, TAGS),
  shorter: fields(SHORTER, TAGS),
  insteadOf: fields({ ...SHORTER, gaps: areGaps }, TAGS),
};

const ABSENT: Checks = {
  cadence: isCadence,
  first: isSupportedPeriod,
  last: isSupportedPeriod,
  reason: oneOf(...ABSENCE_REASONS),
};

const OF_SOME_ABSENCES: Checks = {
  failed: isText,
  refused: fields({ format: isFormat }),
  rest: fields({ asked: isCount, at: isInstant }, { isEmpty: (value) => value === true, lacksToo: isDigest }),
};

/** The needed and the optional fields of each kind of line. */
export const FIELDS: Readonly<Record<ManifestLine['kind'], readonly [Checks, Checks]>> = {
  object: [OBJECT, OF_SOME_OBJECTS],
  absent: [ABSENT, OF_SOME_ABSENCES],
  dropped: [{ key: isText, format: isFormat }, { settings: areSettings }],
};
