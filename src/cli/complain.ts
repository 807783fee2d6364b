/** An error as a person gets to see it. */
import type { CryptodlError } from '../errors.js';
import { codeOfRefusal } from '../exit-code.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { printLines } from '../printable.js';
import { correctedLine } from './corrected-line.js';

export interface Typed {
  readonly argv: readonly string[];
  readonly io: Io;
  /** What stands before these words: `schedule --`. */
  readonly before?: readonly string[];
}

/** One line that says what and where, one that helps, one that can be typed instead; bugs also show where they are. */
export function complain(error: CryptodlError, { argv, io, before }: Typed): ExitCode {
  const { hint, correction, cause } = error;
  const line = correction === undefined ? undefined : correctedLine(argv, correction, io.environment, before);
  const stack = error.code === 'bug' && cause instanceof Error ? cause.stack?.split('\n') : undefined;
  printLines(io.stderr, [
    `cryptodl: ${error.message}`,
    ...[hint, line].flatMap((text) => (text === undefined ? [] : `  ${text}`.split('\n'))),
    ...(stack ?? []),
  ]);
  return codeOfRefusal(error.code);
}
