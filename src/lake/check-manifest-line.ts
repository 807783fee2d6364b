/** Validation of manifest lines, field by field, for all readers of manifests. */
import { FALLBACK_CODES } from '../model/errors.js';
import { dayText, parsePeriod } from '../model/calendar.js';
import { ABSENCE_REASONS } from '../model/absence-reasons.js';
import { FORMATS } from '../model/task.js';
import type { Cadence, Period, Series } from '../model/task.js';
import { isPartitionFile } from './path-checks.js';
import { keyPath, seriesOfFolder } from './layout.js';
import { areSettings, lastSettings } from './settings.js';
import { readPlainLine, SUSPICIOUS_KINDS } from './manifest-line.js';
import type { LinePlace, ManifestLine, ObjectLine, PlainLine } from './manifest-line.js';
import { isLabel } from '../text/label.js';
import { isRecord } from '../text/json.js';

/** Thrown for a line of a later format version; the message is that version. */
export class NewerVersion extends Error {}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns a function that parses and checks a line. It throws `NewerVersion`, or a TypeError with the problem. It accepts periods that are no
 * dates of the calendar; `applyLine` refuses them. A line of the most frequent form gets only the fields that plans compare.
 */
export function createLineReader(
  seriesFolder: string,
  archive: ObjectKeys,
): (text: string) => ManifestLine | PlainLine {
  const keys = createKeyCheck(seriesFolder, archive);
  const check = createLineCheck(seriesFolder, archive);
  const settingsOf = lastSettings();
  // Lines of one file share its name. Each name of its own would keep the text of its line in memory.
  let last = '';
  const fileOf = (file: string): string => (file === last ? last : (last = file));
  const isRight = (place: LinePlace): boolean => placeProblem(place, keys) === undefined;
  return (text) => readPlainLine(text, { settingsOf, fileOf, isRight }) ?? check(parsed(text));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TypeError('the line is not JSON', { cause: error });
  }
}

/** Like `createLineReader`, for a line that is already parsed. The period of an object is a date of the calendar. */
export function createLineCheck(seriesFolder: string, archive: ObjectKeys): (line: unknown) => ManifestLine {
  const keys = createKeyCheck(seriesFolder, archive);
  return (line) => {
    const problem = lineProblem(line, keys);
    if (problem !== undefined) throw new TypeError(problem);
    return line as ManifestLine;
  };
}

function lineProblem(line: unknown, keys: KeyCheck): string | undefined {
  if (!isRecord(line)) return 'the line is not an object';
  const { v: version, kind } = line;
  if (Number.isSafeInteger(version) && (version as number) > 1) throw new NewerVersion(String(version));
  if (version !== 1) return 'unknown version';
  if (kind === 'absent') return fieldProblem(line, ABSENT);
  if (kind === 'dropped')
    return fieldProblem(line, DROPPED) ?? (keys.isOfSeries(line['key'] as string) ? undefined : OTHER_KEY);
  if (kind !== 'object') return '"kind" is unknown';
  return (
    fieldProblem(line, OBJECT) ??
    gapProblem(line as unknown as ObjectLine) ??
    placeProblem(line as unknown as LinePlace, keys)
  );
}

/** Whether the value of a field is right. */
type Check = (value: unknown) => boolean;
type Checks = readonly (readonly [name: string, check: Check])[];

function fieldProblem(fields: Fields, checks: Checks): string | undefined {
  for (const [name, isRight] of checks) if (!isRight(fields[name])) return `"${name}" is wrong`;
  return undefined;
}

function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

function oneOf(...values: readonly string[]): Check {
  const known = new Set<unknown>(values);
  return (value) => known.has(value);
}

const DIGEST = /^[0-9a-f]{64}$/;
const INSTANT =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/;
const CADENCES: readonly Cadence[] = ['daily', 'monthly'];
const isCadence = oneOf(...CADENCES);
const isKind = oneOf(...SUSPICIOUS_KINDS);
const isFormat = oneOf(...FORMATS);
const isLabelOrNone = optional((value) => isText(value) && isLabel(value));

const OBJECT: Checks = [
  ['key', isText],
  ['cadence', isCadence],
  ['period', isText],
  ['sha256', isDigest],
  ['fileSha256', isDigest],
  ['etag', isLabelOrNone],
  ['lastModified', isLabelOrNone],
  ['staleSidecar', isLabelOrNone],
  ['tool', isLabelOrNone],
  ['source', isLabelOrNone],
  ['settings', areSettings],
  ['verified', oneOf('sidecar', 'etag', 'crc', 'rest', 'lake')],
  ['archiveFailed', optional((value) => FALLBACK_CODES.has(value))],
  ['bytes', isCount],
  ['fileBytes', isCount],
  ['rows', optional(isCount)],
  ['fileRows', optional(isCount)],
  [
    'fileBefore',
    optional((value) => isRecord(value) && isCount(value['bytes']) && isDigest(value['sha256'])),
  ],
  ['duplicates', optional(isCount)],
  ['idConflicts', optional(isCount)],
  ['ids', optional(areIds)],
  ['newColumns', optional((value) => Array.isArray(value) && value.every(isLabelOrNone))],
  ['suspicious', optional(areSuspicious)],
  ['first', optional(isInstant)],
  ['last', optional(isInstant)],
  ['at', isInstant],
  ['gaps', optional(areGaps)],
  ['replaces', optional(isRevision)],
  ['shorter', optional((value) => isRevision(value) && isCount(value['rows']))],
  ['insteadOf', optional((value) => isRevision(value) && isCount(value['rows']) && areGaps(value['gaps']))],
];

const DROPPED: Checks = [
  ['key', isText],
  ['format', isFormat],
  ['settings', optional(areSettings)],
];

const ABSENT: Checks = [
  ['cadence', isCadence],
  ['first', isSupportedPeriod],
  ['last', isSupportedPeriod],
  ['reason', oneOf(...ABSENCE_REASONS)],
  ['failed', optional(isText)],
  ['refused', optional((value) => isRecord(value) && isFormat(value['format']))],
  ['rest', optional(isRestRecord)],
];

function isRestRecord(value: unknown): boolean {
  if (!isRecord(value) || !isCount(value['asked']) || !isInstant(value['at'])) return false;
  const { isEmpty, lacksToo } = value;
  return (isEmpty === undefined || isEmpty === true) && (lacksToo === undefined || isDigest(lacksToo));
}

const OTHER_KEY = '"key" is not an object of this series';

function gapProblem({ cadence, period, gaps = [], insteadOf }: ObjectLine): string | undefined {
  const days = parsePeriod(cadence, period);
  if (days === undefined) return '"period" is wrong';
  // The days of an exchange may begin up to one day before or after those of UTC.
  const [first, last] = [dayText(days.from - 1), dayText(days.to + 1)];
  const areInPeriod = [...gaps, ...(insteadOf?.gaps ?? [])].every(
    ([from, to]) => from >= first && to <= last,
  );
  return areInPeriod ? undefined : '"gaps" are not in the period';
}

function placeProblem(
  { key, cadence, period, file, settings: { format } }: LinePlace,
  keys: KeyCheck,
): string | undefined {
  if (!keys.isOfPeriod(key, cadence, period)) return OTHER_KEY;
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

function isRevision(value: unknown): value is Fields {
  if (!isRecord(value)) return false;
  const { bytes, sha256, etag, lastModified } = value;
  return isCount(bytes) && isDigest(sha256) && [etag, lastModified].every(isLabelOrNone);
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && DIGEST.test(value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isInstant(value: unknown): boolean {
  return typeof value === 'string' && INSTANT.test(value);
}

function areIds(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { first, last, missing, overlapping } = value;
  return isCount(first) && isCount(last) && [missing, overlapping].every(optional(isCount));
}

function areSuspicious(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every(
      (one: unknown) =>
        isRecord(one) && isKind(one['kind']) && isCount(one['rows']) && isLabelOrNone(one['first']),
    )
  );
}

function areGaps(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((gap) => Array.isArray(gap) && gap.length === 2 && gap.every(isInstant))
  );
}

/** From 2000 to 2199, because readers iterate over all days of an absence. */
export function isSupportedPeriod(period: unknown): boolean {
  return typeof period === 'string' && period >= '2000' && period < '2200';
}

/** The names of objects in an archive. */
export interface ObjectKeys {
  /** The first folder of all keys; `--format zip` writes below it. */
  readonly topFolder: string;
  /** Returns a function that reads the period of a key; it returns undefined if a name is no key of this series and cadence. */
  periodOf(series: Series, cadence: Cadence): (key: string) => Period | undefined;
}

interface KeyCheck extends Pick<ObjectKeys, 'topFolder'> {
  /** Whether a key belongs to the object of this period. */
  isOfPeriod(key: string, cadence: Cadence, period: string): boolean;
  /** Whether a key belongs to any object of the series. */
  isOfSeries(key: string): boolean;
}

/** Checks that a key belongs to an object of the series in this folder, to rows of it from REST, or to rows that the program made. */
function createKeyCheck(seriesFolder: string, archive: ObjectKeys): KeyCheck {
  const { topFolder } = archive;
  const series = seriesOfFolder(seriesFolder);
  // The folder is not in a lake, so there is no series to compare with.
  if (series === undefined) return { topFolder, isOfPeriod: () => true, isOfSeries: () => true };
  const { market, dataset, interval, symbol } = series;
  const rest = ['rest', market, dataset, ...(interval === undefined ? [] : [interval]), symbol, ''].join('/');
  const made = `made${rest.slice('rest'.length)}`;
  const periodOf = {
    daily: archive.periodOf(series, 'daily'),
    monthly: archive.periodOf(series, 'monthly'),
  };
  const isOfPeriod = (key: string, cadence: Cadence, text: string): boolean => {
    const period = periodOf[cadence](key);
    if (period !== undefined) return period.from === parsePeriod(cadence, text)?.from;
    return key === rest + text || key === made + text;
  };
  const isOfSeries = (key: string): boolean =>
    CADENCES.some((cadence) => {
      const start = [rest, made].find((prefix) => key.startsWith(prefix));
      const own = start === undefined ? undefined : parsePeriod(cadence, key.slice(start.length));
      return own !== undefined || periodOf[cadence](key) !== undefined;
    });
  return { topFolder, isOfPeriod, isOfSeries };
}
