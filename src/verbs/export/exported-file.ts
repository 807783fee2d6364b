/** What became of a file of an export, and what it is made from: the digest of that tells whether it is up to date. */
import { createHash } from 'node:crypto';
import { relative, sep } from 'node:path';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { TOOL_VERSION } from '../../model/version.js';
import { filesOf, type ExportFile } from './export-file.js';
import { MACROS } from './write-rows.js';
import type { Export } from './select-export.js';

/**
 * `unchanged`: made from the same sources, and still there. `empty`: the sources have no rows for it, and there is no file. `planned`: a dry run
 * would write it. The others are failures. `foreign`: the place has a file that export did not write, or that has changed since. `unreadable`:
 * a file of the lake is damaged, or has a number that does not fit. `failed`: files of the lake changed during the export.
 */
export type FileOutcome = 'written' | 'unchanged' | 'empty' | 'planned' | 'foreign' | 'unreadable' | 'failed';

export interface ExportedFile {
  /** Relative to the target. */
  readonly file: string;
  readonly outcome: FileOutcome;
  readonly rows: number;
  readonly bytes: number;
  /** Why it failed. */
  readonly text?: string;
}

/** The file with the days that it has already (`before`), too. Its sources have only the files that may have rows of these days. */
export function widened(file: ExportFile, before: Partial<DayRange> | undefined): ExportFile {
  const sources = file.sources.map((source) => {
    const range = before === undefined ? source.range : union(source.range, before);
    return { ...source, range, files: filesOf({ ...source, range }) };
  });
  return { ...file, sources };
}

function union(one: Partial<DayRange>, other: Partial<DayRange>): Partial<DayRange> {
  return {
    ...(one.from === undefined || other.from === undefined ? {} : { from: Math.min(one.from, other.from) }),
    ...(one.to === undefined || other.to === undefined ? {} : { to: Math.max(one.to, other.to) }),
  };
}

export type Origin = Readonly<ReturnType<typeof originOf>>;

export function originOf({ sources, select, form }: ExportFile, { request, program, root }: Export) {
  // Files of the lake, relative to it.
  const files = sources.flatMap((source) =>
    source.files.map(({ path, sha256 }) => ({ file: relative(root, path).split(sep).join('/'), sha256 })),
  );
  const parts = sources.map(({ series, range: { from, to } }) => [series, from, to]);
  const range: Partial<DayRange> = sources[0]?.range ?? {};
  // Everything that decides the content.
  const recipe = JSON.stringify([MACROS, select, form, parts, files]);
  return {
    engine: program.name,
    recipe: createHash('sha256').update(recipe).digest('hex'),
    range,
    sources: files,
    at: new Date(request.clock.now()).toISOString(),
    tool: `cryptodl ${TOOL_VERSION}`,
  };
}
