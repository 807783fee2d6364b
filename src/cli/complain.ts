/** An error as a person gets to see it. */
import type { CryptodlError } from '../errors.js';
import { codeOfRefusal } from '../exit-code.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { withoutPassword } from '../options/surroundings.js';
import { correctedLine } from './corrected-line.js';

export interface Typed {
  readonly argv: readonly string[];
  readonly io: Io;
  /** What stands before these words: `schedule --`. */
  readonly before?: readonly string[];
}

/** One line that says what and where, one that helps, one that can be typed instead; bugs also show where they are. */
export function complain(error: CryptodlError, { argv, io, before }: Typed): ExitCode {
  const { hint, correction } = error;
  io.stderr.write(`cryptodl: ${withoutPassword(error.message)}\n`);
  if (hint !== undefined) io.stderr.write(`  ${hint}\n`);
  if (correction !== undefined)
    io.stderr.write(`  ${correctedLine(argv, correction, io.environment, before)}\n`);
  if (error.code === 'bug' && error.cause instanceof Error) io.stderr.write(`${error.cause.stack ?? ''}\n`);
  return codeOfRefusal(error.code);
}
