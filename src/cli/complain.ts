/** An error as a person gets to see it. */
import type { Correction, CryptodlError } from '../errors.js';
import { codeOfRefusal } from '../exit-code.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { printLines } from '../printable.js';
import { correctedLine, correctedWords } from './corrected-line.js';
import { isUnderstood } from './program.js';

export interface Typed {
  readonly argv: readonly string[];
  readonly io: Io;
  /** What stands before these words: `schedule --`. */
  readonly before?: readonly string[];
}

/** One line that says what and where, one that helps, one that can be typed instead; bugs also show where they are. */
export function complain(error: CryptodlError, { argv, io, before }: Typed): ExitCode {
  const { hint, correction, cause } = error;
  const line =
    correction === undefined || !mayBeTyped(argv, correction)
      ? undefined
      : correctedLine(argv, correction, io.environment, before);
  const stack = error.code === 'bug' && cause instanceof Error ? cause.stack?.split('\n') : undefined;
  printLines(io.stderr, [
    `cryptodl: ${error.message}`,
    ...[hint, line].flatMap((text) => (text === undefined ? [] : `  ${text}`.split('\n'))),
    ...(stack ?? []),
  ]);
  return codeOfRefusal(error.code);
}

/** A correction may name a flag that this verb does not have. Of two mistakes in a line, one is corrected at a time. */
function mayBeTyped(argv: readonly string[], correction: Correction): boolean {
  return isUnderstood(correctedWords(argv, correction)) || !isUnderstood(argv);
}
