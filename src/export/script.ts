/** Python programs that load rows of the lake with the writers of an engine, and the texts that they hold. */
import { join } from 'node:path';
import { seriesFolder } from '../lake/layout.js';
import { dayText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isMirror } from '../text/mirror-roots.js';
import { absolutePath } from '../text/printable.js';
import type { Days } from './export-file.js';

export interface Script {
  readonly name: string;
  /** The datasets that it loads. */
  readonly datasets: readonly string[];
  /** Throws usage errors for series that it cannot load. */
  readonly textOf: (selected: readonly Series[], request: VerbRequest, range: Partial<Days>) => string;
}

/** The first day and the day after the last one, as a tuple of Python; None without a range. */
export function pythonRange({ from, to }: Partial<Days>): string {
  const days = [from, to].map((day) => (day === undefined ? 'None' : pythonText(dayText(day))));
  return `(${days.join(', ')})`;
}

/** The absolute folder of the files of a series. Throws a usage error for a lake in a bucket. */
export function folderFor(series: Series, { source, resolved, surroundings }: VerbRequest): string {
  const root = absolutePath(resolved.options.out, surroundings.home);
  if (isMirror(root))
    throw usage(
      'the script reads local files, and this lake is in a bucket',
      'copy the lake, and name the copy with --out',
    );
  return join(root, seriesFolder(source.name, series));
}

/** A string literal of Python. */
export function pythonText(text: string): string {
  // JSON escapes are escapes of Python too, except that a lone surrogate stays as it is.
  return JSON.stringify(text);
}

/** A list of tuples of Python, one per line. Undefined is None. */
export function pythonRows(rows: readonly (readonly (string | undefined)[])[]): string {
  const tuples = rows.map(
    (row) => `    (${row.map((cell) => (cell === undefined ? 'None' : pythonText(cell))).join(', ')}),`,
  );
  return `[\n${tuples.join('\n')}\n]`;
}

/** The script with its values: `@SERIES@` stands for the value of SERIES. Values are not read again. */
export function filledScript(script: string, values: Readonly<Record<string, string>>): string {
  return script.replaceAll(/@([A-Z]+)@/g, (found, name: string) => values[name] ?? found);
}
