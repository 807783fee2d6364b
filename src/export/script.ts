/** Python programs that load rows of the lake with the writers of an engine, and the texts that they hold. */
import { basename, dirname } from 'node:path';
import { dayText } from '../model/calendar.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { LakeFile } from '../query/lake-tables.js';
import type { Days, HeldData } from './export-file.js';
import type { ExportSelection } from './select-export.js';

export interface Script {
  readonly name: string;
  /** The datasets that it loads. */
  readonly datasets: readonly string[];
  /** Throws usage errors for series that it cannot load. */
  readonly check: (selection: ExportSelection, request: VerbRequest) => void;
  /** `held`: at least one of the series that `check` accepted. Each has a file. */
  readonly textOf: (held: readonly HeldData[], request: VerbRequest, range: Partial<Days>) => string;
}

/** The first day and the day after the last one, as a tuple of Python; None without a range. */
export function pythonRange({ from, to }: Partial<Days>): string {
  const days = [from, to].map((day) => pythonText(day === undefined ? undefined : dayText(day)));
  return `(${days.join(', ')})`;
}

/** A string literal of Python. Undefined is None. */
export function pythonText(text: string | undefined): string {
  // JSON escapes are escapes of Python too, except that a lone surrogate stays as it is.
  return text === undefined ? 'None' : JSON.stringify(text);
}

/** The folder and the list of the files of a series, as two values of Python. All files of a series are in one folder. */
export function pythonFiles(files: readonly LakeFile[]): string {
  const names = files.map(({ path, settings }) => {
    const name = pythonText(basename(path));
    return settings.format === 'csv' ? `(${name}, ${pythonText(settings.timestamps)})` : name;
  });
  return `${pythonText(dirname(files[0]?.path ?? ''))}, [${names.join(', ')}]`;
}

/** A list of tuples of Python, one per line. `rows`: the values of each tuple. */
export function pythonRows(rows: readonly (readonly string[])[]): string {
  return `[\n${rows.map((row) => `    (${row.join(', ')}),`).join('\n')}\n]`;
}

/** The script with its values: `@SERIES@` stands for the value of SERIES. Values are not read again. */
export function filledScript(script: string, values: Readonly<Record<string, string>>): string {
  return script.replaceAll(/@([A-Z]+)@/g, (found, name: string) => values[name] ?? found);
}

/** The function of the scripts that reads the committed files of a series. */
export const READER = `def frames(folder, files, times, others):
    """The rows of the range in each file, in order, with their times in UTC. \`times\`: columns of times; the first one decides."""
    for file in files:
        if isinstance(file, tuple):
            # A CSV file, and the form of its times.
            name, form = file
            frame = pd.read_csv(Path(folder) / name, usecols=[*times, *others], float_precision="round_trip")
            unit = None if form == "iso" else form
        else:
            frame = pd.read_parquet(Path(folder) / file, columns=[*times, *others])
            unit = None
        for time in times:
            frame[time] = pd.to_datetime(frame[time], unit=unit, utc=True)
        inside = frame[times[0]].notna()
        if FROM is not None:
            inside &= frame[times[0]] >= pd.Timestamp(FROM, tz="UTC")
        if TO is not None:
            inside &= frame[times[0]] < pd.Timestamp(TO, tz="UTC")
        frame = frame[inside]
        if len(frame) > 0:
            yield frame
`;
