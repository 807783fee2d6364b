/** What the writer makes of damaged CSVs. */
import { strict as assert } from 'node:assert';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { CryptodlError } from '../../src/model/errors.js';
import type { Settings } from '../../src/model/task.js';
import type { ColumnSpec } from '../../src/exchange/facts.js';
import { findFirstError } from '../../src/convert/check-rows.js';
import { inspectCsv, knownCells, rowLines } from '../../src/convert/csv-input.js';
import { received, specOf } from '../helpers/conversion.js';
import type { Converter } from '../helpers/conversion.js';
import { CSVS } from './csv-bodies.js';
import type { SoundCsv } from './csv-bodies.js';
import { readCsv } from './csv-reader.js';
import type { Cell, ReadCsv } from './csv-reader.js';
import { heldRows } from './held-rows.js';
import { mutate } from './mutations.js';
import type { Random } from './mutations.js';
import { refusedAs } from './torture.js';

const REFUSALS = ['row-malformed', 'symbol-mismatch', 'header-unknown', 'file-empty'];
const CSV_BYTES = CSVS.map(({ bytes }) => bytes);
const WRITINGS: readonly [Partial<Settings>, ...Partial<Settings>[]] = [
  {},
  { numbers: 'string' },
  { format: 'csv' },
];

function damaged(random: Random): { sound: SoundCsv; bytes: Buffer; how: string } {
  const sound = random.pick(CSVS);
  const { bytes, how } = mutate(random, sound.bytes, CSV_BYTES);
  return { sound, bytes, how: `${sound.name}, ${how}: ${JSON.stringify(bytes.toString('utf8'))}` };
}

/** By the exact checker alone. */
export async function checked(random: Random): Promise<string> {
  const { sound, bytes, how } = damaged(random);
  const spec = specOf(sound.series.market, sound.series.dataset);
  const { symbol } = sound.series;
  const columns = publishedColumns(spec.columns);
  const right = readCsv(columns, symbol, bytes, false);
  const object = received('2024-01-15', bytes);
  try {
    const { headerLines, newColumns } = await inspectCsv(object, spec, symbol);
    const cut = (line: string): string => knownCells(line, columns.length, newColumns.length);
    const file = { name: object.name, symbol, headerLines };
    const wrong = await findFirstError(columns, file, rowLines(object, headerLines, cut));
    if (wrong !== undefined) throw wrong;
  } catch (error) {
    return refusedAtLine(error, right, how);
  }
  assert.equal(right.wrongLine, undefined, how);
  return 'legal all the same';
}

/** By the whole conversion, in every way that it has. */
export async function converted(folder: string, converter: Converter, random: Random): Promise<string> {
  const { sound, bytes, how } = damaged(random);
  const { columns } = specOf(sound.series.market, sound.series.dataset);
  const settings = { ...random.pick(WRITINGS), asPublished: random.below(4) > 0 };
  const staged = random.below(4) === 0;
  const path = random.below(2) === 0 ? join(folder, 'published.csv') : undefined;
  const neighbours = random.below(2) === 0 ? [] : [received('2024-01-16', sound.bytes)];
  const objects = [received('2024-01-15', bytes, path), ...neighbours];
  const made = await converter.convert({ series: sound.series, settings, staged, received: objects });
  const keepsText = settings.numbers === 'string' || settings.format === 'csv';
  const read = (csv: Buffer): ReadCsv =>
    readCsv(publishedColumns(columns), sound.series.symbol, csv, keepsText);
  const right = read(bytes);
  const error = made.failed.get('2024-01-15.zip');
  const shown = `${JSON.stringify({ ...settings, staged })}, ${how}`;
  const outcome = error === undefined ? 'written as it says' : refusedAtLine(error, right, shown);
  if (error === undefined) assert.equal(right.wrongLine, undefined, shown);
  const says = [...(error === undefined ? [right] : []), ...neighbours.map(() => read(sound.bytes))]
    .flatMap(({ rows }) => rows)
    .map((row) => (settings.format === 'csv' ? row : toMilliseconds(row, columns)))
    .map((row) => [...row, ...columns.filter(({ restOnly }) => restOnly).map(() => null)]);
  const found = says.length === 0 ? [] : await heldRows(made.file, columns);
  rmSync(made.file, { force: true });
  const { asPublished } = settings;
  assert.deepEqual(comparable(found, asPublished), comparable(says, asPublished), shown);
  return outcome;
}

/** The archive's files do not have the others, which come last. */
function publishedColumns(columns: readonly ColumnSpec[]): ColumnSpec[] {
  return columns.filter(({ restOnly }) => !restOnly);
}

/** Rows as published; or, where they are sorted and exact duplicates dropped, what is the same then too. */
function comparable(rows: readonly Cell[][], asPublished: boolean): string[] {
  // Zero has no sign in JSON.
  const texts = rows.map((row) => JSON.stringify(row));
  return asPublished ? texts : [...new Set(texts)].sort();
}

/** The reader of Parquet makes dates of instants. */
function toMilliseconds(row: readonly Cell[], columns: readonly ColumnSpec[]): Cell[] {
  const written = columns.filter(({ type }) => type !== 'symbol');
  return row.map((cell, at) => {
    const isInstant = ['time', 'datetime', 'date'].includes(written[at]?.type ?? '');
    return isInstant && typeof cell === 'number' ? Math.floor(cell / 1000) : cell;
  });
}

/** A refusal names the line that the other reader finds wrong first. */
function refusedAtLine(error: unknown, right: ReadCsv, how: string): string {
  const outcome = refusedAs(error, REFUSALS);
  const { code, message } = error as CryptodlError;
  if (code === 'file-empty') assert.deepEqual(right, { rows: [] }, how);
  else {
    const line = /^2024-01-15\.csv line (\d+): /.exec(message)?.[1];
    assert.equal(line, right.wrongLine?.toString() ?? 'none', `${message}; ${how}`);
  }
  return outcome;
}
