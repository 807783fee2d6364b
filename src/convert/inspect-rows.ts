/** Checks all rows of a file of the lake against its manifest lines. */
import { withFile } from '../files/disk.js';
import { areDisjoint, type ObjectLine } from '../model/manifest-line.js';
import { parsePeriod } from '../model/calendar.js';
import type { Settings } from '../model/task.js';
import type { ColumnSpec } from '../exchange/facts.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import { instantExpression, legalExpression, sortExpression, writtenColumns } from './columns.js';
import { isWithinPeriod } from './expected-rows.js';
import type { DuckDb, ResultRow } from './duckdb.js';
import { isContentError } from './load-duckdb.js';
import { readFooter } from './parquet-footer.js';
import { quoteName, quoteText } from './sql.js';
import { names, readStoredRows } from './statements.js';

export interface InspectedFile {
  readonly path: string;
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  readonly interval?: string | undefined;
  /** Objects in the file, in period order. */
  readonly lines: readonly ObjectLine[];
}

/** The problems as texts; empty when there are none. Rejects with typed errors, which do not concern the rows. */
export async function inspectRows(duckdb: DuckDb, file: InspectedFile): Promise<string[]> {
  const isCsv = file.settings.format === 'csv';
  const columns = isCsv
    ? new Set((await readHeader(file.path)).split(','))
    : (await readFooter(file.path)).columns;
  const lacking = writtenColumns(file.spec).filter(({ name }) => !columns.has(name));
  // Older files lack columns that only REST has.
  const missing = lacking.filter(({ restOnly }) => !restOnly);
  if (missing.length > 0) return [`it has no column ${missing.map(({ name }) => name).join(', ')}`];
  const present = { ...file.spec, columns: file.spec.columns.filter((column) => !lacking.includes(column)) };
  let row: ResultRow | undefined;
  try {
    [row] = await duckdb.rows(query({ ...file, spec: present }));
  } catch (error) {
    if (!isContentError(error)) throw error;
    return [`its rows cannot be read: ${(error as Error).message.split('\n')[0] ?? ''}`];
  }
  return row === undefined ? [] : describeProblems(row, file);
}

/** The first line of a CSV file of the lake, without its end. */
export async function readHeader(path: string): Promise<string> {
  const head = Buffer.alloc(4096);
  const { bytesRead } = await withFile(path, 'r', (file) => file.read(head, 0, head.length, 0));
  return head.toString('utf8', 0, bytesRead).split('\n')[0] ?? '';
}

/**
 * `lag() OVER ()` is the row before in the file. DuckDB guarantees that an empty OVER clause, a subquery and FROM with one table keep
 * the order of the rows, also with several threads (its page "Order Preservation").
 */
function query({ path, spec, settings, lines }: InspectedFile): string {
  const keys = spec.sort.flatMap((name) => spec.columns.find((column) => column.name === name) ?? []);
  const key = `row(${keys.map(sortExpression).join(', ')})`;
  // A CSV with times in milliseconds has truncated times.
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
          FROM (SELECT ${instantExpression(spec)} AS instant, ${key} AS key, hash(row(${names(spec)})) AS cells, (${wrong}) AS wrong
                FROM ${readStoredRows({ spec, settings }, path)}))`;
}

function isWrong(column: ColumnSpec): string {
  const { name, type, nullable } = column;
  const cell = quoteName(name);
  if (type === 'number' || type === 'integer' || type === 'hour' || type === 'text')
    return `NOT ${legalExpression(column, '')}`;
  const isBlank = nullable ? 'false' : `${cell} IS NULL`;
  // DuckDB has dates and times that are infinite.
  return type === 'flag' || type === 'symbol'
    ? isBlank
    : `(${isBlank} OR NOT coalesce(isfinite(${cell}), true))`;
}

const withTimes = (lines: readonly ObjectLine[]) =>
  lines.flatMap((line) => {
    const { first, last } = line;
    return first === undefined || last === undefined ? [] : [{ line, first, last }];
  });

function describeProblems(row: ResultRow, file: InspectedFile): string[] {
  const { lines, settings, spec } = file;
  const problems: string[] = [];
  const rows = Number(row['rows']);
  const expected = lines.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  if (rows !== expected) problems.push(`it has ${rows} rows, its manifest lists ${expected}`);
  if (Number(row['wrong']) > 0) problems.push(`${String(row['wrong'])} rows have an invalid cell`);
  if (rows > 0) problems.push(...timeProblems(row, file));
  if (!settings.asPublished && Number(row['unordered']) > 0)
    problems.push(`${String(row['unordered'])} rows are not in the order of ${spec.sort.join(', ')}`);
  // Rows belong to objects by their times.
  const areApart = lines.every((line, index) =>
    lines.slice(index + 1).every((other) => areDisjoint(line, other)),
  );
  if (!areApart) return problems;
  for (const [index, { line }] of withTimes(lines).entries()) {
    const found = Number(row[`object ${index}`]);
    if (found !== line.rows)
      problems.push(`${line.period} has ${found} rows, its manifest line has ${line.rows ?? 0}`);
  }
  // Duplicates within an object are kept only with --as-published, and objects that do not overlap share no rows.
  const doubled = Number(row['doubled']);
  if (!settings.asPublished && doubled > 0) problems.push(`${doubled} rows are duplicates`);
  return problems;
}

function timeProblems(row: ResultRow, { lines, spec, interval }: InspectedFile): string[] {
  const objects = withTimes(lines);
  const stray = objects.find(({ line, ...times }) => {
    const period = parsePeriod(line.cadence, line.period);
    return period !== undefined && !isWithinPeriod(spec, interval, period, times);
  });
  if (stray !== undefined)
    return [`the rows of ${stray.line.period} are from ${stray.first} … ${stray.last}, outside this period`];
  if (objects.length !== lines.length) return [];
  const [first = 0, last = 0] = [row['first'], row['last']].map((us) => Math.floor(Number(us) / 1000));
  const found = `${shown(first)} … ${shown(last)}`;
  const firsts = objects.map((object) => Date.parse(object.first));
  const lasts = objects.map((object) => Date.parse(object.last));
  const listed = `${shown(Math.min(...firsts))} … ${shown(Math.max(...lasts))}`;
  return listed === found ? [] : [`its rows are from ${found}, its manifest lists ${listed}`];
}

const shown = (epochMs: number): string => new Date(epochMs).toISOString();
