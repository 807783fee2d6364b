/** Validation of manifest lines, field by field, for all readers of manifests. */
import { isDeepStrictEqual } from 'node:util';
import { FALLBACK_CODES } from '../model/errors.js';
import { dayText, parsePeriod } from '../model/calendar.js';
import { ABSENCE_REASONS } from '../model/absence-reasons.js';
import { FORMATS } from '../model/task.js';
import type { Period, Settings } from '../model/task.js';
import { isPartitionFile } from '../files/path-checks.js';
import { keyPath } from './safe-names.js';
import { areSettings } from '../model/settings-schema.js';
import { SUSPICIOUS_KINDS } from '../model/outcome.js';
import type { ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { isLabel } from '../text/label.js';
import { isRecord, parseJson } from '../text/json.js';
import { DIGEST, INSTANT, readPlainLine } from './plain-line.js';
import { CADENCES, createKeyCheck } from './object-keys.js';
import type { ObjectKeys, KeyCheck } from './object-keys.js';

/** Thrown for a line of a later format version; the message is that version. */
export class NewerVersion extends Error {}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns a function that parses and checks a line. It throws `NewerVersion`, or a TypeError with the problem. The period of an object is a date of
 * the calendar; `applyLine` refuses other periods of absences.
 */
export function createLineReader(seriesFolder: string, archive: ObjectKeys): (text: string) => ManifestLine {
  const keys = createKeyCheck(seriesFolder, archive);
  // Nearly all lines of a manifest have equal settings. One object for them takes less memory.
  let last: Settings | undefined;
  let known: { readonly text: string; readonly settings: Settings } | undefined;
  const shared = (settings: Settings): Settings =>
    isDeepStrictEqual(last, settings) && last !== undefined ? last : (last = settings);
  const settingsOf = (text: string): Settings | undefined => {
    if (text === known?.text) return known.settings;
    const settings = parseJson(text);
    if (!areSettings(settings)) return undefined;
    known = { text, settings: shared(settings) };
    return known.settings;
  };
  return (text) => {
    const plain = readPlainLine(text, settingsOf);
    const problem = plain && objectProblem(plain, keys);
    if (problem !== undefined) throw new TypeError(problem);
    if (plain !== undefined) return plain;
    const parsed = parseJson(text);
    const wrong = parsed === undefined ? 'the line is not JSON' : lineProblem(parsed, keys);
    if (wrong !== undefined) throw new TypeError(wrong);
    const line = parsed as ManifestLine;
    return line.kind === 'object' ? Object.assign(line, { settings: shared(line.settings) }) : line;
  };
}

function lineProblem(line: unknown, keys: KeyCheck): string | undefined {
  if (!isRecord(line)) return 'the line is not an object';
  const { v: version, kind } = line;
  if (Number.isSafeInteger(version) && (version as number) > 1) throw new NewerVersion(String(version));
  if (version !== 1) return 'unknown version';
  if (kind !== 'absent' && kind !== 'dropped' && kind !== 'object') return '"kind" is unknown';
  const problem = fieldProblem(line, ...FIELDS[kind]);
  if (problem !== undefined || kind === 'absent') return problem;
  if (kind === 'object') return objectProblem(line as unknown as ObjectLine, keys);
  return keys.isOfSeries(line['key'] as string) ? undefined : OTHER_KEY;
}

type Check = (value: unknown) => boolean;
type Checks = Readonly<Record<string, Check>>;

function fieldProblem(record: Fields, needed: Checks, optional: Checks = {}): string | undefined {
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

const WHOLE_DIGEST = new RegExp(`^${DIGEST}$`);
const WHOLE_INSTANT = new RegExp(`^${INSTANT}$`);
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
const FIELDS: Readonly<Record<ManifestLine['kind'], readonly [Checks, Checks]>> = {
  object: [OBJECT, OF_SOME_OBJECTS],
  absent: [ABSENT, OF_SOME_ABSENCES],
  dropped: [{ key: isText, format: isFormat }, { settings: areSettings }],
};

const OTHER_KEY = '"key" is not an object of this series';

/** What is wrong with the period, the gaps, the key or the file of a line whose fields are right. */
function objectProblem(line: ObjectLine, keys: KeyCheck): string | undefined {
  const days = parsePeriod(line.cadence, line.period);
  if (days === undefined) return '"period" is wrong';
  return gapProblem(line, days) ?? placeProblem(line, days, keys);
}

function gapProblem({ gaps = [], insteadOf }: ObjectLine, days: Period): string | undefined {
  // Most lines have none, and are read sooner so.
  if (gaps.length === 0 && insteadOf === undefined) return undefined;
  // The days of an exchange may begin up to one day before or after those of UTC.
  const [first, last] = [dayText(days.from - 1), dayText(days.to + 1)];
  const areInPeriod = [...gaps, ...(insteadOf?.gaps ?? [])].every(
    ([from, to]) => from >= first && to <= last,
  );
  return areInPeriod ? undefined : '"gaps" are not in the period';
}

function placeProblem(
  { key, period, file, settings: { format } }: ObjectLine,
  days: Period,
  keys: KeyCheck,
): string | undefined {
  if (!keys.isOfPeriod(key, days, period)) return OTHER_KEY;
  const isRight =
    format === 'zip'
      ? file === keyPath(key) && file.startsWith(`${keys.topFolder}/`)
      : isPartitionFile(file) &&
        (file === `${period}.${format}` || file === `${period.slice(0, 'YYYY-MM'.length)}.${format}`);
  return isRight ? undefined : '"file" is not the file of this object';
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isLabelText(value: unknown): boolean {
  return isText(value) && isLabel(value);
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && WHOLE_DIGEST.test(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isInstant(value: unknown): boolean {
  return typeof value === 'string' && WHOLE_INSTANT.test(value);
}

/** From 2000 to 2199, because readers iterate over all days of an absence. */
export function isSupportedPeriod(period: unknown): boolean {
  return typeof period === 'string' && period >= '2000' && period < '2200';
}
