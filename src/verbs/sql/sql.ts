/** `cryptodl sql`: prints the result of a query on the lake, as a table on a terminal, else as CSV or NDJSON. */
import { statSync } from 'node:fs';
import { verbRequestOf, withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeExact } from '../../terminal/write-data.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { countText } from '../../model/units.js';
import { printLines } from '../../text/printable.js';
import { readText, readTextFile } from '../../text/read-text.js';
import { printRows, printTable } from '../../run/verb/print-table.js';
import { lakeViews, queryLake } from '../../run/verb/query-lake.js';
import type { QueryFlag } from '../../plan/options/verb-request.js';

/** The operand is the query, `-` for stdin, or `@FILE`. Throws usage errors. */
type SqlCommand = VerbCall<QueryFlag | 'csv' | 'json' | 'quiet' | 'views'>;

export async function sql(command: SqlCommand): Promise<ExitCode> {
  const { io, resolved, operand } = command;
  const { options } = resolved;
  if (options.csv && options.json) throw usage('--csv and --json cannot be used together', 'keep one');
  if (options.views) return printViews(command);
  // A signal ends the process while it waits for stdin.
  const text = await readQuery(operand, io);
  return withSignals(command, async (request) => {
    const result = await queryLake(text, request);
    try {
      const isTable = !options.json && !options.csv && io.stdout.isTTY === true;
      const rows = await (isTable ? printTable(io, result) : printRows(io, result, options.json));
      // Undefined when the reader of stdout has closed it.
      if (rows !== undefined && !options.quiet) printLines(io.stderr, [countText(rows, 'row')]);
    } finally {
      await result.close();
    }
    return 0;
  });
}

async function printViews(command: SqlCommand): Promise<ExitCode> {
  if (command.operand !== undefined)
    throw usage('--views prints all views and takes no query', 'leave the query out');
  const request = verbRequestOf(command, new AbortController().signal);
  for await (const statement of lakeViews(request)) if (!(await writeExact(command.io, statement))) break;
  return 0;
}

async function readQuery(operand: string | undefined, io: Io): Promise<string> {
  if (operand === undefined)
    throw usage('sql needs a query', 'give the query as text, @FILE for a file, or - for stdin');
  if (operand === '-') return readText(io.stdin);
  if (/^\S+$/.test(operand) && statSync(operand, { throwIfNoEntry: false })?.isFile() === true)
    throw usage(`sql: ${operand} is a file`, '@ reads the query from a file');
  if (!operand.startsWith('@')) return operand;
  return readTextFile(operand.slice(1), 'sql', 'name a file with a query: @FILE');
}
