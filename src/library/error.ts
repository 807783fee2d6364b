/** The error of the library: a code, an exit code, and messages that name options as flags. */
import { toCryptodlError } from '../model/errors.js';
import type { CryptodlError as ProgramError, ErrorCode } from '../model/errors.js';
import { exitCodeOfError } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { withAddresses } from '../text/mirror-roots.js';

/** Errors that end a call, but not the same call at a later time. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['locked', 'unreachable', 'interrupted']);

/** Compare `code`, not the message. */
export class CryptodlError extends Error {
  override readonly name = 'CryptodlError';
  readonly code: ErrorCode;
  /** The next step, if one is known. */
  readonly hint: string | undefined;
  /** The exit code of a command that ends with this error. */
  readonly exitCode: ExitCode;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(error: ProgramError) {
    const { code, message, hint, cause } = error;
    super(withAddresses(message), cause === undefined ? undefined : { cause });
    this.code = code;
    this.hint = hint === undefined ? undefined : withAddresses(hint);
    this.exitCode = exitCodeOfError(code);
    this.retryable = error.retryable || PASSING.has(code);
  }
}

/** Converts errors of the program and of disks. Errors of hooks and bugs stay as they are. */
export function libraryError(error: unknown): unknown {
  const known = toCryptodlError(error);
  return known.code === 'bug' && known !== error ? error : new CryptodlError(known);
}

/** Calls the function and converts its errors. */
export function inLibraryErrors<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw libraryError(error);
  }
}
