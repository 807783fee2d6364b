/** Prints an error for people: the message, the hint, and the stack of a bug. */
import type { CryptodlError } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { nameOptions } from '../options/flags.js';
import type { OptionSources } from '../options/resolve.js';
import { printLines } from '../text/printable.js';
import { originalStack } from './original-stack.js';

/** Prints the error with its hint. Bugs also print their stack. Returns the exit code. Without `sources`, messages name flags. */
export function printError(error: CryptodlError, io: Io, sources?: OptionSources): ExitCode {
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
