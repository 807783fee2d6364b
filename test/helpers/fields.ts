/** The names and types of fields of JSON, for comparisons of formats. */
import { readFileSync } from 'node:fs';

/** Records whose keys are data: reasons, codes, buckets, datasets. */
const RECORDS = new Set([
  'requests',
  'absentBy',
  'fetchBy',
  'absent',
  'failed',
  'errors',
  'buckets',
  'waits',
  'failures',
  'options',
]);

export function jsonLines(file: string): Readonly<Record<string, unknown>>[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

/** One entry per field, with its path: `settings.partition: string`. An element of a list is `[]`, of a record `*`. */
export function fieldsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null)
    return [`${path}: ${value === null ? 'null' : typeof value}`];
  const isRecord = RECORDS.has(path.split('.').at(-1) ?? '');
  const names = Object.entries(value).map(([name, each]): [string, unknown] => [
    Array.isArray(value) ? '[]' : isRecord ? '*' : name,
    each,
  ]);
  const fields = names.flatMap(([name, each]) => fieldsOf(each, path === '' ? name : `${path}.${name}`));
  return [...new Set([`${path}: ${Array.isArray(value) ? 'list' : 'object'}`, ...fields])].sort();
}
