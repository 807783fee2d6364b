/** `cryptodl plot`: draws a series of the lake on the terminal or as a page. */
import { writeFile } from 'node:fs/promises';
import { withSignals } from '../../run/verb/look-up.js';
import type { Command } from '../../run/verb/verb.js';
import { hasColour, writeData, writeText } from '../../terminal/write-data.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { bytesText } from '../../model/units.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { pageFile } from '../../terminal/page-shell.js';
import { absolutePath, shownPath } from '../../text/printable.js';
import { MOST_STEPS, chartHtml } from './chart.js';
import { chartText, plotColumns } from './draw-text.js';
import type { TextStyle } from './draw-text.js';
import type { Flag } from './make-chart.js';
import { chartOf } from './make-chart.js';

/** The operand is the symbol; it can be left out for a lake with one symbol. */
export async function plot(command: Command<Flag | 'force' | 'html'>): Promise<ExitCode> {
  const { io, operand } = command;
  return withSignals(command, async (request) => {
    const { html, quiet, force } = command.resolved.options;
    const { home } = request.surroundings;
    const page = html === undefined ? undefined : pageFile('plot', absolutePath(html, home), force);
    if (page !== undefined) await refuseForeignFile(page);
    const style = styleOf(io);
    const most = page === undefined ? plotColumns(style.columns) : MOST_STEPS;
    const chart = await chartOf(operand, request, most);
    if (page === undefined) {
      await writeText(io, `${chartText(chart, style).join('\n')}\n`);
      return 0;
    }
    const bytes = await writeOwnFile(page, (staged) => writeFile(staged, chartHtml(chart)));
    if (!quiet) await writeData(io, [`wrote ${shownPath(page.path)}: ${bytesText(bytes)}`]);
    return 0;
  });
}

const MOST_COLUMNS = 400;

function styleOf(io: Io): TextStyle {
  const { stdout, environment } = io;
  const sizeOf = (shown: number | undefined, name: 'COLUMNS' | 'LINES', usual: number): number => {
    const size = shown ?? Number(environment[name]);
    return Number.isInteger(size) && size > 0 ? Math.min(size, MOST_COLUMNS) : usual;
  };
  return {
    columns: sizeOf(stdout.columns, 'COLUMNS', 80),
    rows: sizeOf(stdout.rows, 'LINES', 24),
    hasColour: hasColour(io),
  };
}
