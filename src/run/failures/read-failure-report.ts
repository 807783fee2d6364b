/** The failure report, one JSON line per failure, is the input of `cryptodl retry`: its lines, and how they are read. */
import { usage } from '../../model/errors.js';
import { stat, lstat, readFile, realpath } from 'node:fs/promises';
import { reasonOf } from '../../text/path-faults.js';
import * as v from 'valibot';
import { SettingsSchema } from '../../model/settings-schema.js';
import { parseJson } from '../../text/json.js';

const OptionsSchema = v.record(v.string(), v.array(v.string()));

const HeaderSchema = v.object({
  v: v.literal(1),
  kind: v.literal('header'),
  verb: v.picklist(['vision', 'metrics', 'repair']),
  tool: v.string(),
  at: v.string(),
  options: OptionsSchema,
});

const EntrySchema = v.object({
  v: v.literal(1),
  kind: v.literal('failed'),
  market: v.string(),
  dataset: v.string(),
  interval: v.optional(v.string()),
  symbol: v.string(),
  cadence: v.picklist(['daily', 'monthly']),
  period: v.string(),
  key: v.string(),
  code: v.string(),
  retryable: v.boolean(),
  attempts: v.number(),
  message: v.string(),
  at: v.string(),
  settings: SettingsSchema,
});

export type RunHeader = Omit<v.InferOutput<typeof HeaderSchema>, 'v' | 'kind'>;
export type WrittenEntry = v.InferOutput<typeof EntrySchema>;
/** A failure with the number of its line, from 1. */
type ReportEntry = WrittenEntry & { readonly line: number };

export type ReadReport = Readonly<Awaited<ReturnType<typeof readFailureReport>>>;

export const GIVE_REPORT =
  'a run with failures writes its report to _failures of the lake: cryptodl retry data/_failures/NAME.jsonl';

/** Reads a report. Throws a usage error if the file cannot be read, and for the first line that is not part of a report. */
export async function readFailureReport(path: string) {
  const { lines, cut } = await linesOf(path);
  const [first, ...others] = lines;
  const header = v.safeParse(HeaderSchema, first?.content);
  if (!header.success)
    throw usage(`${path} is not a failure report: its first line is not a header`, GIVE_REPORT);
  const entries: ReportEntry[] = [];
  for (const { line, content } of others) {
    const entry = v.safeParse(EntrySchema, content);
    if (!entry.success)
      throw usage(`${path} line ${line} is not a failure (${entry.issues[0].message})`, 'remove that line');
    entries.push({ ...entry.output, line });
  }
  const target = (await lstat(path)).isSymbolicLink() ? await realpath(path) : path;
  return {
    /** As given. */
    path,
    /** Path of the file, or of the target if the file is a symbolic link; undefined for a pipe. */
    file: (await stat(path)).isFile() ? target : undefined,
    header: header.output,
    entries,
    /** The number of the last line, if that line is cut: its failure is not known. */
    cut,
  };
}

/** `cut`: the number of the last line, if that line is cut. */
async function linesOf(path: string) {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(`cannot read ${path} (${reasonOf(error)})`, GIVE_REPORT);
  });
  const all = text.split('\n');
  const lines = all.flatMap((each, index) =>
    each.trim() === '' ? [] : [{ line: index + 1, content: parseJson(each.trim()) }],
  );
  const damaged = lines.find(({ content }) => content === undefined);
  if (damaged === undefined) return { lines, cut: undefined };
  // The last line of a run that was killed has no line end.
  if (damaged.line === all.length) return { lines: lines.slice(0, -1), cut: damaged.line };
  throw usage(`${path} line ${damaged.line} is not JSON`, GIVE_REPORT);
}
