/** The fields of each kind of manifest line, and the checks of their values. */
import { FALLBACK_CODES } from '../model/errors.js';
import { ABSENCE_REASONS } from '../model/absence-reasons.js';
import { FORMATS } from '../model/task.js';
import { areSettings } from '../model/settings-schema.js';
import { SUSPICIOUS_KINDS } from '../model/outcome.js';
import type { ManifestLine } from '../model/manifest-line.js';
import { isRecord } from '../text/json.js';
import { CADENCES } from './object-keys.js';
import type { Check } from './value-checks.js';
import {
  listOf,
  oneOf,
  isText,
  isLabelText,
  isDigest,
  isCount,
  isInstant,
  isSupportedPeriod,
} from './value-checks.js';

type Fields = Readonly<Record<string, unknown>>;
type Checks = Readonly<Record<string, Check>>;

export function fieldProblem(record: Fields, needed: Checks, optional: Checks = {}): string | undefined {
  for (const name in needed) if (needed[name]?.(record[name]) !== true) return `"${name}" is wrong`;
  for (const name in optional)
    if (record[name] !== undefined && optional[name]?.(record[name]) !== true) return `"${name}" is wrong`;
  return undefined;
}

function fields(needed: Checks, optional?: Checks): Check {
  return (value) => isRecord(value) && fieldProblem(value, needed, optional) === undefined;
}

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
