/** Loads the package of DuckDB, and gives its errors a type. */
import type * as Values from '@duckdb/node-api';
import { createRequire } from 'node:module';
import { FULL_HINT, errnoOf, CryptodlError } from '../model/errors.js';

/** The version of DuckDB. Rejects when its native binary cannot be loaded. */
export const duckdbVersion = (): Promise<string> => new Promise((resolve) => resolve(loadDuckDb().version()));

/** Uses `require`, because `import()` reads the many files of the package twice. Throws `engine-missing` if this platform's binary cannot be loaded. */
export function loadDuckDb(): typeof Values {
  try {
    return createRequire(import.meta.url)('@duckdb/node-api') as typeof Values;
  } catch (cause) {
    const [message = ''] = cause instanceof Error ? cause.message.split('\n') : [String(cause)];
    const fault = errnoOf(cause) === 'MODULE_NOT_FOUND' ? 'is not installed' : `cannot be loaded: ${message}`;
    const binaries = 'DuckDB has binaries for Linux, macOS and Windows on x64 and arm64';
    const text = `the DuckDB binary for ${process.platform} ${process.arch} ${fault}`;
    throw new CryptodlError('engine-missing', text, {
      cause,
      hint: `install cryptodl again on this machine with npm install --include=optional; ${binaries}, and --format zip works without it`,
    });
  }
}

export const interrupted = (): CryptodlError =>
  new CryptodlError('interrupted', 'the statement was interrupted');

/**
 * Whether an error of a query means that its file, or a row in it, cannot be read: damage, a file of another kind, or columns of
 * another type. False for typed errors other than `disk`, for errors of the program, and for a query that is wrong for each file.
 */
export function isFileError(error: unknown): boolean {
  return error instanceof CryptodlError ? error.code === 'disk' : isContentError(error);
}

/** The same without errors of the disk. */
export const isContentError = (error: unknown): boolean =>
  error instanceof Error &&
  !(error instanceof CryptodlError) &&
  /^(?!FATAL|Parser|Catalog)[A-Za-z ]+ Error: /.test(error.message);

/** Turns errors of DuckDB about the disk, the memory or an interruption into typed errors. DuckDB has no error codes, so the text decides. */
export async function mapErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
    if (/No space left|disk quota/i.test(text)) {
      throw new CryptodlError('disk-full', `the disk is full: ${text}`, {
        cause: error,
        hint: FULL_HINT,
      });
    }
    if (text.startsWith('INTERRUPT Error')) throw interrupted();
    if (text.startsWith('IO Error'))
      throw new CryptodlError('disk', text, { cause: error, hint: 'check the disk and the permissions' });
    if (text.startsWith('Out of Memory Error')) {
      throw new CryptodlError('out-of-memory', `DuckDB exceeded its memory limit: ${text}`, {
        cause: error,
        hint: 'write smaller files (--partition day), or fewer at once (--concurrency 1)',
      });
    }
    throw error;
  }
}
