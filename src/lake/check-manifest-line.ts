/** Validation of manifest lines, field by field, for all readers of manifests. */
import { isDeepStrictEqual } from 'node:util';
import { dayText, parsePeriod } from '../model/calendar.js';
import type { Period, Settings } from '../model/task.js';
import { isPartitionFile } from '../files/path-checks.js';
import { safeKeyPath } from './safe-names.js';
import { areSettings } from '../model/settings-schema.js';
import type { ManifestLine, ObjectLine } from '../model/manifest-line.js';
import { isRecord, parseJson } from '../text/json.js';
import { readPlainLine } from './plain-line.js';
import { createKeyCheck, type ObjectKeys, type KeyCheck } from './object-keys.js';
import { fieldProblem, FIELDS } from './line-fields.js';
import { CryptodlError } from '../model/errors.js';

/** Thrown for a line of a later format version; the message is that version. */
export class NewerVersion extends Error {}

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
      ? file === safeKeyPath(key) && file.startsWith(`${keys.topFolder}/`)
      : isPartitionFile(file) &&
        (file === `${period}.${format}` || file === `${period.slice(0, 'YYYY-MM'.length)}.${format}`);
  return isRight ? undefined : '"file" is not the file of this object';
}

/** The error for a line that the reader has thrown `cause` for. `where`: file and line. */
export function lineError(where: string, cause: unknown): CryptodlError {
  if (cause instanceof NewerVersion) {
    const text = `${where} has version ${cause.message}; this cryptodl reads version 1`;
    return new CryptodlError('manifest-damaged', text, {
      cause,
      hint: 'use the newer cryptodl that wrote it, or choose another --out',
    });
  }
  return new CryptodlError('manifest-damaged', `${where} is damaged`, {
    cause,
    hint: 'restore the file; or move the line to the quarantine with cryptodl verify --fix, and fetch its object again with cryptodl repair',
  });
}
