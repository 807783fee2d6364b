/** The results of writes. */
import { CryptodlError } from '../../model/errors.js';
import type { ObjectFacts } from '../../convert/conversion.js';
import type { MadeFile } from './commit-lines.js';
import { datasetSpec } from './make-file.js';
import { replacedRevision } from './object-lines.js';
import type { PlannedWrite } from './partition-guards.js';
import type { WriteResult, WriterContext, WrittenObject } from './writer.js';
import { expectedRows } from '../../convert/expected-rows.js';

/** The result of a write that makes these files. Call it before their commit, because the commit replaces the held lines. */
export function resultOf(
  context: WriterContext,
  { plan, existing, received }: PlannedWrite,
  made: readonly MadeFile[],
  failed: ReadonlyMap<string, CryptodlError>,
): WriteResult {
  const spec = datasetSpec(context, plan);
  const written = new Map<string, WrittenObject>();
  for (const each of received) {
    const { object } = each;
    const facts = factsOf(made, object.key);
    if (facts === undefined) continue;
    const expected = facts.expectedRows ?? expectedRows(spec, plan.series, object);
    const replaces = replacedRevision(existing.objects, each);
    written.set(object.key, {
      ...facts,
      ...(expected === undefined ? {} : { expectedRows: expected }),
      ...(replaces === undefined ? {} : { replaces }),
    });
  }
  const sum = (value: (file: MadeFile) => number): number =>
    made.reduce((total, file) => total + value(file), 0);
  return {
    written,
    failed,
    files: made.length,
    bytes: sum(({ facts }) => facts.bytes),
    duplicatesAcross: sum(({ result }) => result.duplicatesAcross),
    overlaps: made.flatMap(({ result }) => result.overlap ?? []),
  };
}

export function factsOf(made: readonly MadeFile[], key: string): ObjectFacts | undefined {
  return made.map(({ result }) => result.written.get(key)).find((facts) => facts !== undefined);
}

/** The error for an object whose only file is damaged or missing. `quarantinePath`: the damaged file; undefined for a missing one. */
export function lostError(file: string, key: string, quarantinePath: string | undefined): CryptodlError {
  const state = quarantinePath === undefined ? `${file} was missing` : `${file} was damaged`;
  return new CryptodlError(
    'object-withdrawn',
    `${state}, and ${key} cannot be fetched again: its rows are lost`,
    quarantinePath === undefined ? {} : { hint: `the damaged file is kept as ${quarantinePath}` },
  );
}
