/** Validation of manifest lines, field by field, for all readers of manifests. */
import { FALLBACK_CODES } from '../model/errors.js';
import { dayText, parsePeriod, periodText } from '../model/calendar.js';
import { ABSENCE_REASONS, FORMATS } from '../model/task.js';
import type { Cadence, Period, Series, Settings } from '../model/task.js';
import { isPartitionFile, isPlainName } from './path-checks.js';
import { keyPath, seriesOfFolder } from './layout.js';
import { lastSettings, settingsProblem } from './settings.js';
import { PlainLine, readPlainLine } from './manifest-line.js';
import type { LinePlace, ManifestLine, ObjectLine } from './manifest-line.js';
import { isLabel } from '../text/label.js';

/** Thrown for a line of a later format version; the message is that version. */
export class NewerVersion extends Error {}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Parses and checks a line. Throws `NewerVersion`, or a TypeError with the problem. Does not check whether periods are dates of the
 * calendar.
 */
export type LineReader = (text: string) => ManifestLine;

export function createLineReader(seriesFolder: string, archive: ObjectKeys): LineReader {
  const read = createLazyReader(seriesFolder, archive);
  return (text) => wholeLine(read(text));
}

/** The line with all fields. */
function wholeLine(line: ManifestLine | PlainLine): ManifestLine {
  return line instanceof PlainLine ? line.line : line;
}

/** Like `createLineReader`. A line of the most frequent form gets only the fields that plans compare. */
export function createLazyReader(
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
  return (text) => {
    const plain = readPlainLine(text, { settingsOf, fileOf, isRight });
    return plain ?? check(parsed(text));
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TypeError('the line is not JSON', { cause: error });
  }
}

/** Like `createLineReader`, for a line that is already parsed. */
export function createLineCheck(seriesFolder: string, archive: ObjectKeys): (line: unknown) => ManifestLine {
  const keys = createKeyCheck(seriesFolder, archive);
  return (line) => {
    const problem = lineProblem(line, keys);
    if (problem !== undefined) throw new TypeError(problem);
    return line as ManifestLine;
  };
}

function lineProblem(line: unknown, keys: KeyCheck): string | undefined {
  if (typeof line !== 'object' || line === null) return 'the line is not an object';
  const fields = line as Fields;
  const { v: version, kind } = fields;
  if (Number.isSafeInteger(version) && (version as number) > 1) throw new NewerVersion(String(version));
  if (version !== 1) return 'unknown version';
  if (kind === 'object') return objectProblem(fields, keys);
  if (kind === 'absent') return absentProblem(fields);
  return kind === 'dropped' ? droppedProblem(fields, keys) : '"kind" is unknown';
}

const KNOWN_FORMATS: ReadonlySet<unknown> = new Set(FORMATS);
const CADENCES: readonly Cadence[] = ['daily', 'monthly'];
const KNOWN_CADENCES: ReadonlySet<unknown> = new Set(CADENCES);
const VERIFIED: ReadonlySet<unknown> = new Set<ObjectLine['verified']>([
  'sidecar',
  'etag',
  'crc',
  'rest',
  'lake',
]);
const REASONS: ReadonlySet<string> = new Set(ABSENCE_REASONS);
const DIGEST = /^[0-9a-f]{64}$/;
const INSTANT =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/;
const COUNTS = ['rows', 'fileRows', 'duplicates', 'idConflicts'] as const;
const INSTANTS = ['first', 'last'] as const;
const LABELS = ['etag', 'lastModified', 'staleSidecar', 'tool', 'source'] as const;

function objectProblem(fields: Fields, keys: KeyCheck): string | undefined {
  const { key, cadence, period, settings } = fields;
  if (typeof key !== 'string') return '"key" is not a text';
  if (!KNOWN_CADENCES.has(cadence)) return '"cadence" is unknown';
  if (typeof period !== 'string') return '"period" is not a period';
  if (!isDigest(fields['sha256'])) return '"sha256" is not a SHA-256';
  if (!isDigest(fields['fileSha256'])) return '"fileSha256" is not a SHA-256';
  const label = LABELS.find((name) => !isLabelOrNone(fields[name]));
  if (label !== undefined) return `"${label}" is not a short text`;
  const setting = settingsProblem(settings);
  if (setting !== undefined) return setting;
  if (!VERIFIED.has(fields['verified'])) return '"verified" is unknown';
  const { archiveFailed } = fields;
  if (archiveFailed !== undefined && !FALLBACK_CODES.has(archiveFailed))
    return '"archiveFailed" is not a failure of the archive';
  if (!isCount(fields['bytes'])) return '"bytes" is not a count';
  if (!isCount(fields['fileBytes'])) return '"fileBytes" is not a count';
  const count = COUNTS.find((name) => fields[name] !== undefined && !isCount(fields[name]));
  if (count !== undefined) return `"${count}" is not a count`;
  const instant = INSTANTS.find((name) => fields[name] !== undefined && !isInstant(fields[name]));
  if (instant !== undefined) return `"${instant}" is not an instant`;
  if (!isInstant(fields['at'])) return '"at" is not an instant';
  const days = parsePeriod(cadence as Cadence, period);
  if (fields['gaps'] !== undefined && !areGaps(fields['gaps'], days))
    return '"gaps" is not a list of time spans in the period';
  const revision = revisionProblem(fields, days);
  if (revision !== undefined) return revision;
  return placeProblem(
    { key, cadence: cadence as Cadence, period, file: fields['file'], settings: settings as Settings },
    keys,
  );
}

interface Place extends Omit<LinePlace, 'file'> {
  readonly file: unknown;
}

function placeProblem(
  { key, cadence, period, file, settings: { format } }: Place,
  keys: KeyCheck,
): string | undefined {
  if (!keys.isOfPeriod(key, cadence, period)) return '"key" is not an object of this series';
  const isRight =
    format === 'zip'
      ? file === keyPath(key) && isBelow(keys.topFolder, file)
      : isPartitionFile(file) &&
        (file === `${period}.${format}` ||
          (cadence === 'daily' && file === `${period.slice(0, 'YYYY-MM'.length)}.${format}`));
  return isRight ? undefined : '"file" is not the file of this object';
}

/** Whether a path has no other parts than plain names, of which the first is the folder. */
function isBelow(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`) && path.split('/').every(isPlainName);
}

function revisionProblem(
  { replaces, shorter, insteadOf }: Fields,
  days: Period | undefined,
): string | undefined {
  if (replaces !== undefined && !isRevision(replaces)) return '"replaces" is not a revision';
  if (shorter !== undefined && !(isRevision(shorter) && isCount(shorter['rows'])))
    return '"shorter" is not a revision';
  if (insteadOf === undefined) return undefined;
  const isShort = isRevision(insteadOf) && isCount(insteadOf['rows']) && areGaps(insteadOf['gaps'], days);
  return isShort ? undefined : '"insteadOf" is not a revision';
}

function isRevision(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const { bytes, sha256, etag, lastModified } = value as Fields;
  return isCount(bytes) && isDigest(sha256) && [etag, lastModified].every(isLabelOrNone);
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && DIGEST.test(value);
}

function isLabelOrNone(value: unknown): boolean {
  return value === undefined || (typeof value === 'string' && isLabel(value));
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isInstant(value: unknown): boolean {
  return typeof value === 'string' && INSTANT.test(value);
}

/** The days of an exchange may begin up to one day before or after those of UTC. `days` undefined: another check refuses the period. */
function areGaps(value: unknown, days: Period | undefined): boolean {
  if (!Array.isArray(value)) return false;
  const first = days === undefined ? '' : dayText(days.from - 1);
  const last = days === undefined ? '9999' : dayText(days.to + 1);
  return value.every((gap) => {
    if (!Array.isArray(gap) || gap.length !== 2 || !gap.every(isInstant)) return false;
    const [from, to] = gap as [string, string];
    return from >= first && to <= last;
  });
}

function droppedProblem({ key, format, settings }: Fields, keys: KeyCheck): string | undefined {
  if (typeof key !== 'string') return '"key" is not a text';
  if (!KNOWN_FORMATS.has(format)) return '"format" is unknown';
  const setting = settings === undefined ? undefined : settingsProblem(settings);
  if (setting !== undefined) return setting;
  return keys.isOfSeries(key) ? undefined : '"key" is not an object of this series';
}

function absentProblem({ cadence, first, last, reason, failed, refused, rest }: Fields): string | undefined {
  if (!KNOWN_CADENCES.has(cadence)) return '"cadence" is unknown';
  if (!isSupportedPeriod(first) || !isSupportedPeriod(last))
    return '"first" or "last" is not a period from 2000 to 2199';
  if (typeof reason !== 'string' || !REASONS.has(reason)) return '"reason" is unknown';
  if (failed !== undefined && typeof failed !== 'string') return '"failed" is not a code';
  if (refused !== undefined && !(isObject(refused) && KNOWN_FORMATS.has(refused['format'])))
    return '"refused" is not a revision';
  if (rest === undefined) return undefined;
  return isObject(rest) && isCount(rest['asked']) && isInstant(rest['at']) ? undefined : '"rest" is unknown';
}

/** From 2000 to 2199, because readers iterate over all days of an absence. */
export function isSupportedPeriod(period: unknown): boolean {
  return typeof period === 'string' && period >= '2000' && period < '2200';
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
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
    if (key === rest + text || key === made + text) return true;
    const period = periodOf[cadence](key);
    return period !== undefined && periodText(period) === text;
  };
  const isOfSeries = (key: string): boolean =>
    CADENCES.some((cadence) => {
      const start = [rest, made].find((prefix) => key.startsWith(prefix));
      const own = start === undefined ? undefined : parsePeriod(cadence, key.slice(start.length));
      return own !== undefined || periodOf[cadence](key) !== undefined;
    });
  return { topFolder, isOfPeriod, isOfSeries };
}
