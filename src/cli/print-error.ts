/** Prints an error for people: the message, the hint, and the stack of a bug. */
import type { CryptodlError } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { nameOptions } from '../options/flags.js';
import type { OptionSources } from '../options/resolve.js';
import { printLines } from '../text/printable.js';
import { originalStack } from './original-stack.js';

/** Where an error is printed, and how its text names options. */
export interface Typed {
  readonly io: Io;
  /** The sources of the options. Without it, messages name flags. */
  readonly sources?: OptionSources;
}

/** Prints the error with its hint. Bugs also print their stack. Returns the exit code. */
export function printError(error: CryptodlError, { io, sources }: Typed): ExitCode {
  const { code, hint, cause } = error;
  const stack = code === 'bug' && cause instanceof Error ? originalStack(cause.stack ?? '').split('\n') : [];
  const message = sources === undefined ? error.message : nameOptions(error.message, sources.nameOf);
  printLines(io.stderr, [
    `cryptodl: ${message}`,
    ...(hint?.split('\n') ?? []).map((line) => `  ${line.trimStart()}`),
    ...stack,
  ]);
  return exitCodeOfError(code);
}
