/** What a partition may not become: a file with fewer rows than it had, or rows that are held twice. */
import { dayPeriod } from '../calendar.js';
import { CryptodlError } from '../errors.js';
import { isFromRest } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest.js';
import type { PartitionPlan } from '../task.js';
import type { ReceivedObject } from './csv-input.js';
import { deadFiles, lostLines, overlappedFiles } from './held-file.js';
import type { HeldFile } from './held-file.js';
import type { WriteResult } from './writer.js';

/** Files and objects that are not there any more once these are written. */
export function superseded(
  plan: PartitionPlan,
  held: HeldFile,
  received: readonly ReceivedObject[],
): { dead: string[]; lost: ObjectLine[] } {
  const periods = [
    ...received.map(({ object }) => object.period),
    ...(plan.emptyDays ?? []).map((day) => dayPeriod(day)),
  ];
  const dead = deadFiles(held, periods);
  return { dead: plan.split === true ? [...dead, held.file] : dead, lost: lostLines(held, periods) };
}

/** Why nothing may be written: a sound file would lose rows, or rows would be held twice. */
export function refusal(
  plan: PartitionPlan,
  held: HeldFile,
  received: readonly ReceivedObject[],
  absent: ReadonlySet<string>,
  failed: ReadonlyMap<string, CryptodlError> = new Map(),
): WriteResult | undefined {
  const periods = received.map(({ object }) => object.period);
  const { dead, lost } = superseded(plan, held, received);
  if (lost.length > 0 && plan.rebuild !== 'damaged')
    return refuseAll(received, incomplete(lost, absent), failed);
  const doubled = overlappedFiles(held, periods).filter((file) => !dead.includes(file));
  if (doubled.length === 0) return undefined;
  const error = new CryptodlError(
    'partition-incomplete',
    `${doubled.join(', ')} holds other days as well, so its days cannot be written elsewhere one by one`,
    {
      hint: 'run the whole range with cryptodl vision --force',
    },
  );
  return refuseAll(received, error, failed);
}

function incomplete(lost: readonly ObjectLine[], absent: ReadonlySet<string>): CryptodlError {
  const keys = lost.map((line) => line.key).join(', ');
  const file = lost[0]?.file ?? '';
  if (lost.every(isFromRest)) {
    return new CryptodlError(
      'object-withdrawn',
      `${file} stays as it is: REST keeps ${keys} no more, and only this file holds its rows`,
      { hint: 'leave --force out, or download into another --out' },
    );
  }
  if (!lost.every((line) => absent.has(line.key))) {
    return new CryptodlError(
      'partition-incomplete',
      `${file} stays as it is: ${keys} could not be had again`,
    );
  }
  return new CryptodlError(
    'object-withdrawn',
    `${file} stays as it is: the archive has ${keys} no more, and only this file holds its rows`,
    {
      hint: 'download into another --out for the archive as it is now',
    },
  );
}

export function refuseAll(
  received: readonly ReceivedObject[],
  error: CryptodlError,
  failed: ReadonlyMap<string, CryptodlError>,
): WriteResult {
  return nothing(new Map([...received.map(({ object }) => [object.key, error] as const), ...failed]));
}

export function nothing(failed: ReadonlyMap<string, CryptodlError>): WriteResult {
  return { written: new Map(), failed, files: 0, bytes: 0, duplicatesAcross: 0, overlaps: [] };
}
