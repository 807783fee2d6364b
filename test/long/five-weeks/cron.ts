/** Cron runs over two lakes: the command of one names symbols and days, the command of the other continues the lake. */
import { existsSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { cryptodl, FAST } from '../../helpers/cli.js';
import type { CliResult } from '../../helpers/cli.js';
import { sql } from '../../helpers/sql.js';
import { FIRST_CRON, SERIES } from './story.js';
import { COLUMNS, nameOf, textOf } from './rows.js';
import type { Dataset, Series } from './rows.js';
import type { Bucket } from './archive.js';
import { Oracle } from './oracle.js';
import type { Expected } from './oracle.js';
import { keyOf } from './world.js';
import type { World } from './world.js';

export interface Lake {
  readonly name: string;
  readonly folder: string;
  readonly oracle: Oracle;
  /** Whether the command names no symbols after the first day. */
  readonly continues: boolean;
  readonly problems: string[];
  /** Requests of all runs by `key@etag`. */
  readonly requests: Map<string, number>;
}

/** Keys that one run may fetch once more, because their file was damaged. */
export type Excused = ReadonlySet<string>;

const PERIOD = ['--interval', '1h', '--dataset', 'klines,aggTrades,metrics'];

export function lakeAt(name: string, folder: string, world: World, continues: boolean): Lake {
  return { name, folder, oracle: new Oracle(world), continues, problems: [], requests: new Map() };
}

/** Runs the command of one cron day and notes each difference from the oracle. */
export async function cronDay(lake: Lake, bucket: Bucket, today: number, excused: Excused): Promise<void> {
  const isFirst = today === FIRST_CRON;
  const days = lake.continues ? (isFirst ? 7 : 0) : 1;
  const words = days === 0 ? [] : [...PERIOD, '--symbols', '*USDT', '--days', String(days)];
  // The glob finds a new symbol on its first day, also where a run continues the lake.
  const ordered = lake.continues ? FIRST_CRON - 7 : today;
  await run(lake, bucket, today, words, lake.oracle.run(today, SERIES, days, ordered), excused);
}

async function run(
  lake: Lake,
  bucket: Bucket,
  today: number,
  words: readonly string[],
  expected: Expected,
  excused: Excused,
): Promise<void> {
  const result = await inLake(lake, bucket, today, 'vision', [...words, '--json', '--quiet', ...FAST]);
  const problem = (text: string): void => {
    lake.problems.push(`${textOf(today)} ${lake.name}: ${text.replaceAll(/data\/\S*\/(?=\S+\.zip)/g, '')}`);
  };
  if (result.code !== expected.exitCode)
    problem(`exit code ${result.code} instead of ${expected.exitCode}: ${result.stderr.trim()}`);
  checkOutcomes(result, expected, problem);
  checkReport(result, expected, problem);
  checkWords(result, expected, problem);
  checkRequests(lake, bucket.takeZipRequests(lake.name), { expected, excused }, problem);
}

export function inLake(
  lake: Pick<Lake, 'name' | 'folder'>,
  bucket: Bucket,
  today: number,
  verb: string,
  words: readonly string[],
): Promise<CliResult> {
  const places = ['--out', lake.folder, '--now', `${textOf(today)}T08:05:00Z`];
  const network = verb === 'vision' ? ['--archive-url', bucket.urlFor(lake.name)] : [];
  return cryptodl([verb, ...words, ...places, ...network], {
    env: { CRYPTODL_STATE_DIR: `${lake.folder}-state` },
  });
}

type Problem = (text: string) => void;

function checkOutcomes({ events }: CliResult, expected: Expected, problem: Problem): void {
  const told = events.filter(({ event }) => event === 'object');
  for (const key of twice(told.map((event) => String(event['key'])))) problem(`${key} is told twice`);
  const outcomes = new Map(told.map((event) => [String(event['key']), String(event['outcome'])]));
  for (const [key, outcome] of expected.outcomes)
    if (outcomes.get(key) !== outcome)
      problem(`${key} is ${outcomes.get(key) ?? 'not told'} instead of ${outcome}`);
  for (const event of told) {
    const key = String(event['key']);
    if (event['outcome'] !== 'failed') continue;
    if (expected.failures.get(key) !== event['code'])
      problem(`${key} fails with ${String(event['code'])}, expected ${expected.failures.get(key)}`);
  }
  const changed = events.filter(({ event }) => event === 'changed').map((event) => String(event['key']));
  for (const key of twice(changed)) problem(`${key} is told twice as changed`);
  for (const key of expected.changed) if (!changed.includes(key)) problem(`${key} is not told as changed`);
  for (const key of changed)
    if (!expected.changed.has(key) && !expected.shrunk.has(key)) problem(`${key} has not changed`);
}

/** The failure report has each failure once, and there is none without failures. */
function checkReport({ events }: CliResult, expected: Expected, problem: Problem): void {
  const summary = events.find(({ event }) => event === 'summary');
  const path = summary?.['failures'];
  if (typeof path !== 'string') {
    if (expected.failures.size > 0) problem('no failure report');
    return;
  }
  const keys = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ kind }) => kind === 'failed')
    .map(({ key }) => String(key));
  if (keys.sort().join('\n') !== [...expected.failures.keys()].sort().join('\n'))
    problem(`the failure report has ${keys.join(', ')}`);
}

/** Text that is printed also with --quiet. */
function checkWords({ stderr, stdout }: CliResult, expected: Expected, problem: Problem): void {
  for (const key of expected.shrunk)
    if (!stderr.includes(key)) problem(`--quiet does not name the shrunk ${key}: ${stderr}`);
  const said = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('withdrawn'));
  for (const key of expected.carried)
    if (!said.some((line) => line.includes(key))) problem(`the withdrawn ${key} is not said`);
  const isAllWell = [...expected.outcomes.values()].every((outcome) => outcome === 'ok');
  if (isAllWell && expected.carried.size === 0 && stderr !== '') problem(`--quiet says ${stderr}`);
}

function checkRequests(
  lake: Lake,
  asked: readonly string[],
  { expected, excused }: { readonly expected: Expected; readonly excused: Excused },
  problem: Problem,
): void {
  const counts = new Map<string, number>();
  for (const request of asked) counts.set(request, (counts.get(request) ?? 0) + 1);
  for (const [request, count] of counts) {
    const key = request.split('@')[0] ?? '';
    const most = (expected.requests.get(request) ?? 0) + (excused.has(key) ? 1 : 0);
    if (count > most) problem(`${request} is asked for ${count} times, at most ${most} expected`);
    lake.requests.set(request, (lake.requests.get(request) ?? 0) + count);
  }
}

function twice(texts: readonly string[]): string[] {
  return [...new Set(texts.filter((text, index) => texts.indexOf(text) !== index))];
}

/** Differences between the rows of all files of a lake and the oracle's. */
export async function compareRows(lake: Lake, today: number): Promise<void> {
  const datasets: Dataset[] = ['klines', 'aggTrades', 'metrics'];
  for (const dataset of datasets) {
    const held = await readRows(lake.folder, dataset);
    for (const series of SERIES.filter((one) => one.dataset === dataset)) {
      const wanted = lake.oracle.rows(series);
      const found = held.get(series.symbol) ?? [];
      held.delete(series.symbol);
      if (found.join('\n') === wanted.join('\n')) continue;
      const missing = wanted.filter((row) => !found.includes(row));
      const extra = found.filter((row) => !wanted.includes(row));
      lake.problems.push(
        `${textOf(today)} ${lake.name}: ${nameOf(series)} has ${found.length} rows instead of ${wanted.length}; ` +
          `${missing.length} missing: ${missing[0] ?? '-'}; ${extra.length} extra: ${extra[0] ?? '-'}`,
      );
    }
    for (const symbol of held.keys())
      lake.problems.push(`${textOf(today)} ${lake.name}: rows of ${dataset} ${symbol}`);
  }
}

/** Rows of every Parquet file below the folder by symbol, in the order of files and of rows in them. */
export async function readRows(folder: string, dataset: Dataset): Promise<Map<string, string[]>> {
  const root = join(folder, 'binance', 'um', dataset);
  const rows = new Map<string, string[]>();
  if (!existsSync(root)) return rows;
  const columns = COLUMNS[dataset].map((column, index) => `${column} AS c${index}`);
  const found = await sql(
    `SELECT regexp_extract(filename, 'symbol=([^/]+)/', 1) AS symbol, ${columns.join(', ')}
     FROM read_parquet('${root}/**/*.parquet', filename = true, file_row_number = true, hive_partitioning = false)
     ORDER BY filename, file_row_number`,
  );
  for (const row of found) {
    const symbol = String(row['symbol']);
    const cells = columns.map((_, index) => String(row[`c${index}`])).join(',');
    const list = rows.get(symbol) ?? [];
    list.push(cells);
    rows.set(symbol, list);
  }
  return rows;
}

/** Truncates the file of a month. Its objects may be fetched once more. */
export function damageMonth(lake: Lake, series: Series, month: string): Excused {
  const file = join(lake.folder, `binance/um/klines/interval=1h/symbol=${series.symbol}`, `${month}.parquet`);
  truncateSync(file, 1000);
  return new Set(
    lake.oracle
      .days(series)
      .map(textOf)
      .filter((day) => day.startsWith(month))
      .map((day) => keyOf(series, day)),
  );
}
