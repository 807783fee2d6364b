/** What a partition may not become: a file with fewer rows than it had, or rows that are held twice. */
import { dayPeriod } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { isFromRest } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { PartitionPlan } from '../model/task.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import { supersededFiles, areDisjoint, lostLines, overlappedFiles, overlaps } from './existing-file.js';
import type { ExistingFile } from './existing-file.js';
import type { Missing, WriteResult } from './writer.js';

/** Files and objects that are not there any more once these are written. */
export function findSuperseded(
  plan: PartitionPlan,
  existing: ExistingFile,
  received: readonly ReceivedObject[],
): { dead: string[]; lost: ObjectLine[] } {
  const periods = [
    ...received.map(({ object }) => object.period),
    ...(plan.emptyDays ?? []).map((day) => dayPeriod(day)),
  ];
  const dead = supersededFiles(existing, periods);
  return { dead: plan.split === true ? [...dead, existing.file] : dead, lost: lostLines(existing, periods) };
}

/** Why nothing may be written: a sound file would lose rows, or rows would be held twice. */
export function guardWrite(
  plan: PartitionPlan,
  existing: ExistingFile,
  received: readonly ReceivedObject[],
  missing: Missing,
): WriteResult | undefined {
  const periods = received.map(({ object }) => object.period);
  const { dead, lost } = findSuperseded(plan, existing, received);
  if (lost.length > 0 && plan.rebuild !== 'damaged') return failAll(received, incompleteError(lost, missing));
  const doubled = overlappedFiles(existing, periods).filter((file) => !dead.includes(file));
  if (doubled.length === 0) return undefined;
  const error = new CryptodlError(
    'partition-incomplete',
    `${doubled.join(', ')} holds other days as well, so its days cannot be written elsewhere one by one`,
    {
      hint: 'run the whole range with cryptodl vision --force',
    },
  );
  return failAll(received, error);
}

/** Received objects that cannot take the place of what is held of them: rows of an object that stays lie among theirs. */
export function findInterleaved(
  existing: ExistingFile,
  received: readonly ReceivedObject[],
  missing: Missing,
): Map<string, CryptodlError> {
  const back = new Map<string, CryptodlError>();
  for (const { object } of received) {
    const own = existing.replaced.filter((line) => overlaps(line, object.period));
    const others = existing.kept.filter((line) => own.some((each) => !areDisjoint(line, each)));
    if (others.length > 0) back.set(object.key, incompleteError(others, missing));
  }
  return back;
}

/** A sound file keeps rows that are not there to be written again; the error has the code of the reason. */
function incompleteError(lost: readonly ObjectLine[], missing: Missing): CryptodlError {
  const keys = lost.map((line) => line.key).join(', ');
  const file = lost[0]?.file ?? '';
  const causes = lost.map((line) => missing.get(line.key));
  const errors = causes.filter((cause) => cause instanceof CryptodlError);
  const cause = errors.find((error) => error.retryable) ?? errors[0];
  if (cause !== undefined || causes.includes(undefined)) {
    const code = cause === undefined || cause.retryable ? 'partition-incomplete' : cause.code;
    const text = `${file} stays as it is: ${keys} could not be had again`;
    return new CryptodlError(code, text, cause === undefined ? {} : { cause });
  }
  if (lost.every(isFromRest)) {
    return new CryptodlError(
      'object-withdrawn',
      `${file} stays as it is: REST keeps ${keys} no more, and only this file holds its rows`,
      { hint: 'leave --force out, or download into another --out' },
    );
  }
  return new CryptodlError(
    'object-withdrawn',
    `${file} stays as it is: the archive has ${keys} no more, and only this file holds its rows`,
    { hint: 'download into another --out for the archive as it is now' },
  );
}

/** Of an object that only a damaged or missing file held. */
export function lostError(file: string, key: string, aside: string | undefined): CryptodlError {
  const what = aside === undefined ? `${file} was missing` : `${file} was damaged`;
  return new CryptodlError(
    'object-withdrawn',
    `${what}, and ${key} cannot be had again: its rows are lost`,
    aside === undefined ? {} : { hint: `the damaged file is ${aside}` },
  );
}

export function failAll(received: readonly ReceivedObject[], error: CryptodlError): WriteResult {
  return emptyResult(new Map(received.map(({ object }) => [object.key, error])));
}

export function emptyResult(failed: ReadonlyMap<string, CryptodlError>): WriteResult {
  return { written: new Map(), failed, files: 0, bytes: 0, duplicatesAcross: 0, overlaps: [] };
}
