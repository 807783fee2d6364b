/** `cryptodl sql`: runs a query on the lake and prints a table on a terminal, else CSV or NDJSON. */
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { complain } from '../cli/print-error.js';
import type { Typed } from '../cli/print-error.js';
import { watchSignals } from '../cli/watch-signals.js';
import { writeText } from '../cli/write-data.js';
import type { QueryResult } from '../convert/duckdb.js';
import { errnoOf, toCryptodlError, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { numberText } from '../model/units.js';
import { homeOf } from '../options/environment.js';
import type { Resolved } from '../options/resolve.js';
import { absolutePath } from '../text/paths.js';
import { linesText, printLines } from '../text/printable.js';
import { csvLine, jsonLine, printTable } from './print-table.js';
import { lakeViews, queryLake } from './query-lake.js';
import type { QueriedLake } from './query-lake.js';
import type { Source } from '../source/source.js';

export interface SqlRun {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
}

/** `operand` is the query, `-` for stdin, or `@FILE`. Throws usage errors. */
export async function sql(operand: string | undefined, run: SqlRun): Promise<ExitCode> {
  const { source, io, typed, resolved } = run;
  const { options } = resolved;
  if (options.csv && options.json)
    throw usage('--csv and --json exclude each other', 'keep one', { flags: { csv: null } });
  const home = homeOf(io.environment);
  const lake: QueriedLake = {
    venue: source,
    root: absolutePath(options.out, home),
    warn: (message) => {
      printLines(io.stderr, [`warning: ${message}`]);
    },
  };
  if (options.views) return printViews(lake, operand, io);
  const text = await readQuery(operand, io);
  const signals = watchSignals(io);
  const tempFolder = options.tempDir === undefined ? undefined : absolutePath(options.tempDir, home);
  try {
    const rows = await queryLake({ ...lake, text, tempFolder, signal: signals.signal }, (answer) =>
      print(run, answer),
    );
    if (rows !== undefined && !options.quiet)
      printLines(io.stderr, [`${numberText(rows)} ${rows === 1 ? 'row' : 'rows'}`]);
    return 0;
  } catch (error) {
    const signal = signals.signalled();
    if (signal !== undefined) return signal === 'SIGINT' ? 130 : 143;
    return complain(toCryptodlError(error), typed);
  } finally {
    signals.release();
  }
}

async function printViews(lake: QueriedLake, operand: string | undefined, io: Io): Promise<ExitCode> {
  if (operand !== undefined)
    throw usage('--views prints all views and takes no query', undefined, { flags: { views: null } });
  for await (const statement of lakeViews(lake)) if (!(await writeExact(io, statement))) break;
  return 0;
}

async function readQuery(operand: string | undefined, io: Io): Promise<string> {
  if (operand === undefined)
    throw usage('sql needs a query', '- reads it from stdin, @FILE from a file', {
      command: ['sql', 'SHOW TABLES'],
    });
  if (operand === '-') return readAll(io.stdin);
  if (!operand.startsWith('@')) return operand;
  const path = operand.slice(1);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`sql: cannot read ${path} (${errnoOf(error)})`, 'write @FILE for a query in a file');
  }
}

/** Resolves with the number of rows; undefined when the reader of stdout has closed it. */
async function print({ io, resolved }: SqlRun, answer: QueryResult): Promise<number | undefined> {
  const { options } = resolved;
  if (!options.json && !options.csv && io.stdout.isTTY === true) return printTable(io, answer);
  const names = answer.columns.map(({ name }) => name);
  const lineOf = options.json ? jsonLine(names) : csvLine;
  if (!options.json && !(await writeExact(io, csvLine(names)))) return undefined;
  let number = 0;
  for await (const rows of answer.batches) {
    number += rows.length;
    if (!(await writeExact(io, rows.map(lineOf).join('')))) return undefined;
  }
  return number;
}

/** Replaces control characters only on a terminal. */
function writeExact(io: Io, text: string): Promise<boolean> {
  const isTerminal = io.stdout.isTTY === true;
  return writeText(io, isTerminal ? linesText(text.split('\n').slice(0, -1)) : text);
}
