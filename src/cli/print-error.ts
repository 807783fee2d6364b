/** Prints an error for people, with a checked suggestion: a command line, or a change in the environment or the config file. */
import type { Correction, CryptodlError } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { FLAG_NAMES, nameOptions } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { RANGE } from '../options/resolve.js';
import type { OptionSources } from '../options/resolve.js';
import { printLines } from '../text/printable.js';
import { correctedWords, lineText, workingLine } from './corrected-line.js';
import type { Corrected, RefusalOf } from './corrected-line.js';
import { originalStack } from './original-stack.js';

/** The command line of an error, and what its correction needs. */
export interface Typed {
  readonly argv: readonly string[];
  readonly io: Io;
  /** The error of a suggested line. */
  readonly refusalOf: RefusalOf;
  /** The words before `argv`, for example `schedule --`. */
  readonly before?: readonly string[];
  /** The sources of the options. Without it, messages name flags. */
  readonly sources?: OptionSources;
}

/** Prints the error with its hint and a suggestion. Bugs also print their stack. Returns the exit code. */
export async function printError(error: CryptodlError, typed: Typed): Promise<ExitCode> {
  const { io, sources } = typed;
  const { hint, cause } = error;
  const stack =
    error.code === 'bug' && cause instanceof Error ? originalStack(cause.stack ?? '').split('\n') : undefined;
  const message = sources === undefined ? error.message : nameOptions(error.message, sources.nameOf);
  const hints = (hint?.split('\n') ?? []).map((line) => line.trimStart());
  const suggested = (await suggestions(error.correction, typed)).filter((line) => !hints.includes(line));
  printLines(io.stderr, [
    `cryptodl: ${message}`,
    ...[...hints, ...suggested].flatMap((text) => `  ${text}`.split('\n')),
    ...(stack ?? []),
  ]);
  return exitCodeOfError(error.code);
}

/** The lines of the suggestion: changes in the environment or in the config file, and a command line if flags change. */
async function suggestions(correction: Correction | undefined, typed: Typed): Promise<string[]> {
  const { argv, before, refusalOf } = typed;
  const corrected = await workingLine(argv, correction, refusalOf);
  if (corrected === undefined) return [];
  const edits = editsOf(corrected, typed);
  const inFlags = Object.fromEntries(
    Object.entries(corrected.flags).filter(([name]) => !edits.some((edit) => edit.name === name)),
  );
  const isLine = edits.length === 0 || Object.keys(inFlags).length > 0;
  const words = edits.length === 0 ? corrected.words : correctedWords(argv, { flags: inFlags });
  return [...edits.map(({ text }) => text), ...(isLine ? [lineText(words, before)] : [])];
}

/** The changes of options that were given in the environment or in the config file. */
function editsOf({ flags }: Corrected, { sources }: Typed): { name: FlagName; text: string }[] {
  return FLAG_NAMES.flatMap((name) => {
    const value = flags[name];
    if (value === undefined || sources === undefined || isReplaced(name, flags)) return [];
    const { edit, values } = sources.layerOf(name) ?? {};
    return edit === undefined ? [] : [{ name, text: edit(name, value, values?.[name]?.join(',') ?? '') }];
  });
}

/**
 * Whether the correction removes a flag of a range but sets another one. The range of the command line then wins, so the removed flag
 * may stay in its file.
 */
function isReplaced(name: FlagName, flags: Corrected['flags']): boolean {
  return (
    flags[name] === null &&
    RANGE.has(name) &&
    FLAG_NAMES.some((other) => RANGE.has(other) && typeof flags[other] === 'string')
  );
}
