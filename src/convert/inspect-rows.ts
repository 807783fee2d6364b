/** Every row of a file of the lake, read again: whether they are those that its manifest lines tell of. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { ObjectLine } from '../lake/manifest-line.js';
import { parsePeriod } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { Settings } from '../model/task.js';
import type { ColumnSpec } from '../source/facts.js';
import type { DatasetSpec } from '../source/venue.js';
import {
  instantExpression,
  isWithinPeriod,
  legalTimeRange,
  sortExpression,
  writtenColumns,
} from './columns.js';
import type { Row, DuckDbSession } from './duckdb.js';
import { quoteName, quoteText } from './sql.js';
import { readStoredRows } from './statements.js';

export interface InspectedFile {
  readonly path: string;
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  readonly interval?: string | undefined;
  /** Objects in the file, in period order. */
  readonly lines: readonly ObjectLine[];
  /** Columns that it has; undefined for CSV, whose header says. */
  readonly columns: ReadonlySet<string> | undefined;
}

/** What is wrong, in words; empty when all is as it should be. Rejects with typed errors, which are not about the rows. */
export async function inspectRows(session: DuckDbSession, file: InspectedFile): Promise<string[]> {
  const columns = file.columns ?? (await headerOf(file.path));
  const lacking = writtenColumns(file.spec).filter(({ name }) => !columns.has(name));
  // A column that only REST has came later than the first files.
  const missing = lacking.filter(({ restOnly }) => !restOnly);
  if (missing.length > 0) return [`it has no column ${missing.map(({ name }) => name).join(', ')}`];
  const present = { ...file.spec, columns: file.spec.columns.filter((column) => !lacking.includes(column)) };
  let row: Row | undefined;
  try {
    [row] = await session.rows(query({ ...file, spec: present }));
  } catch (error) {
    if (error instanceof CryptodlError) throw error;
    return [`its rows cannot be read: ${(error as Error).message.split('\n')[0] ?? ''}`];
  }
  return row === undefined ? [] : describeProblems(row, file);
}

async function headerOf(path: string): Promise<Set<string>> {
  const input = createReadStream(path);
  try {
    for await (const line of createInterface({ input })) return new Set(line.split(','));
    return new Set();
  } finally {
    input.destroy();
  }
}

function query({ path, spec, settings, lines }: InspectedFile): string {
  const keys = spec.sort.flatMap((name) => spec.columns.find((column) => column.name === name) ?? []);
  const key = `row(${keys.map(sortExpression).join(', ')})`;
  const cells = writtenColumns(spec)
    .map(({ name }) => quoteName(name))
    .join(', ');
  // Milliseconds have lost what is behind them.
  const isCut = settings.format === 'csv' && settings.timestamps === 'ms';
  const counts = withTimes(lines).map(({ first, last }, index) => {
    const start = `TIMESTAMP ${quoteText(first)}`;
    const from = isCut ? `date_trunc('milliseconds', ${start})` : start;
    return `count_if(instant BETWEEN ${from} AND TIMESTAMP ${quoteText(last)}) AS "object ${index}"`;
  });
  const wrong = writtenColumns(spec).map(isWrong).join(' OR ');
  const selected = [
    'count(*) AS rows',
    'epoch_us(min(instant)) AS first',
    'epoch_us(max(instant)) AS last',
    'count_if(key < previous) AS unordered',
    'count_if(cells = cells_before) AS doubled',
    'count_if(wrong) AS wrong',
    ...counts,
  ];
  return `SELECT ${selected.join(', ')}
    FROM (SELECT *, lag(key) OVER () AS previous, lag(cells) OVER () AS cells_before
          FROM (SELECT ${instantExpression(spec)} AS instant, ${key} AS key, hash(row(${cells})) AS cells, (${wrong}) AS wrong
                FROM ${readStoredRows({ spec, settings }, path)}))`;
}

/** Expression that is true for a cell that was never written. */
function isWrong({ name, type, nullable }: ColumnSpec): string {
  const cell = quoteName(name);
  const isBlank = nullable ? 'false' : `${cell} IS NULL`;
  if (type !== 'number' && type !== 'integer' && type !== 'hour') return isBlank;
  return `(${isBlank} OR (${cell} IS NOT NULL AND NOT coalesce(isfinite(TRY_CAST(${cell} AS DOUBLE)), false)))`;
}

interface Timed {
  readonly line: ObjectLine;
  readonly first: string;
  readonly last: string;
}

function withTimes(lines: readonly ObjectLine[]): Timed[] {
  return lines.flatMap((line) =>
    line.first === undefined || line.last === undefined ? [] : [{ line, first: line.first, last: line.last }],
  );
}

function describeProblems(row: Row, file: InspectedFile): string[] {
  const { lines, settings, spec } = file;
  const wrong: string[] = [];
  const rows = Number(row['rows']);
  const expected = lines.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  if (rows !== expected) wrong.push(`it has ${rows} rows, its manifest says ${expected}`);
  if (Number(row['wrong']) > 0) wrong.push(`${String(row['wrong'])} rows have a cell that is no value`);
  if (rows > 0) wrong.push(...timeProblems(row, file));
  if (!settings.asPublished && Number(row['unordered']) > 0)
    wrong.push(`${String(row['unordered'])} rows are out of the order of ${spec.sort.join(', ')}`);
  const objects = withTimes(lines);
  if (objects.length !== lines.length || !areDisjoint(objects)) return wrong;
  for (const [index, { line }] of objects.entries()) {
    const found = Number(row[`object ${index}`]);
    if (found !== line.rows)
      wrong.push(`${line.period} has ${found} rows, its manifest line says ${line.rows ?? 0}`);
  }
  // Within one object the same row is kept only as published; objects that do not overlap share none.
  const doubled = Number(row['doubled']);
  if (!settings.asPublished && doubled > 0) wrong.push(`${doubled} rows are there twice`);
  return wrong;
}

function timeProblems(row: Row, { lines, spec, interval }: InspectedFile): string[] {
  const periods = lines.flatMap((line) => parsePeriod(line.cadence, line.period) ?? []);
  const legal = legalTimeRange(spec, interval, {
    from: Math.min(...periods.map((period) => period.from)),
    to: Math.max(...periods.map((period) => period.to)),
  });
  const [first = 0, last = 0] = [row['first'], row['last']].map((us) => Math.floor(Number(us) / 1000));
  if (first < legal.first || last > legal.last)
    return [`its rows are of ${shown(first)} … ${shown(last)}, which is not its period`];
  const objects = withTimes(lines);
  const stray = objects.find(({ line, ...times }) => {
    const period = parsePeriod(line.cadence, line.period);
    return period !== undefined && !isWithinPeriod(spec, interval, period, times);
  });
  if (stray !== undefined)
    return [
      `the rows of ${stray.line.period} are of ${stray.first} … ${stray.last}, which is not its period`,
    ];
  if (objects.length !== lines.length) return [];
  const said = [
    Math.min(...objects.map((object) => Math.floor(Date.parse(object.first)))),
    Math.max(...objects.map((object) => Math.floor(Date.parse(object.last)))),
  ];
  if (said[0] === first && said[1] === last) return [];
  return [
    `its rows are of ${shown(first)} … ${shown(last)}, its manifest says ${shown(said[0] ?? 0)} … ${shown(said[1] ?? 0)}`,
  ];
}

function shown(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

function areDisjoint(objects: readonly Timed[]): boolean {
  const spans = objects.map(({ first, last }) => ({
    first: inMicroseconds(first),
    last: inMicroseconds(last),
  }));
  spans.sort((a, b) => (a.first < b.first ? -1 : 1));
  return spans.every((span, index) => index === 0 || (spans[index - 1]?.last ?? '') < span.first);
}

/** Texts that are in the order of their times. */
function inMicroseconds(instant: string): string {
  const plain = instant.replace('Z', '');
  return (plain.includes('.') ? plain : `${plain}.`).padEnd('2024-01-01T00:00:00.000000'.length, '0');
}
