/** Turns errors of DuckDB that do not concern the data into typed errors. */
import { CryptodlError } from '../model/errors.js';

export function interrupted(): CryptodlError {
  return new CryptodlError('interrupted', 'the write was interrupted');
}

/**
 * Whether an error of a query means that its file, or a row in it, cannot be read: damage, a file of another kind, or columns of
 * another type. False for typed errors other than `disk`, for errors of the program, and for a query that is wrong for each file.
 */
export function isFileError(error: unknown): boolean {
  if (error instanceof CryptodlError) return error.code === 'disk';
  return error instanceof Error && /^(?!FATAL|Parser|Catalog)[A-Za-z ]+ Error: /.test(error.message);
}

/** Maps errors of DuckDB that do not concern the data. DuckDB has no error codes, so the text decides. */
export async function mapErrors<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
    if (/No space left|disk quota/i.test(text)) {
      throw new CryptodlError('disk-full', `the disk is full: ${text}`, {
        cause: error,
        hint: 'free some space and try again; committed files are kept',
      });
    }
    if (text.startsWith('INTERRUPT Error')) throw interrupted();
    if (text.startsWith('IO Error')) throw new CryptodlError('disk', text, { cause: error });
    if (text.startsWith('Out of Memory Error')) {
      throw new CryptodlError('out-of-memory', `DuckDB exceeded its memory limit: ${text}`, {
        cause: error,
        hint: 'write smaller files (--partition day), or fewer at once (--concurrency 1)',
      });
    }
    throw error;
  }
}
