/** Checks samples of a large CSV while it is unpacked, so that invalid content does not fill the disk. */
import { CryptodlError } from '../model/errors.js';
import type { DatasetSpec } from '../source/venue.js';
import { archivedColumns } from '../source/venue.js';
import { LONGEST_LINE, findLineError } from './check-rows.js';
import { headerOf } from './csv-input.js';

const NEWLINE = 0x0a;

export interface SampledCsv {
  readonly spec: DatasetSpec;
  readonly symbol: string;
  /** Name of the CSV, for messages. */
  readonly name: string;
}

/**
 * Returns a function that takes the chunks of an archived CSV in order, and checks the header and the first complete line of each
 * chunk. It throws `header-unknown`, `row-malformed` or `symbol-mismatch`. All rows are checked later.
 */
export function sampleRows({ spec, symbol, name }: SampledCsv): (chunk: Buffer) => void {
  const columns = archivedColumns(spec);
  let bytes = 0;
  let bytesOfLine = 0;
  return (chunk) => {
    if (bytes === 0) headerOf(chunk, columns, name);
    const start = chunk.indexOf(NEWLINE) + 1;
    const end = start === 0 ? -1 : chunk.indexOf(NEWLINE, start);
    bytesOfLine = start === 0 ? bytesOfLine + chunk.length : chunk.length - chunk.lastIndexOf(NEWLINE) - 1;
    if (bytesOfLine > LONGEST_LINE) {
      const text = `${name}: the line at byte ${bytes + chunk.length - bytesOfLine} is longer than ${LONGEST_LINE} characters`;
      throw new CryptodlError('row-malformed', text);
    }
    if (end >= 0) {
      const wrong = findLineError(columns, symbol, chunk.toString('utf8', start, end).replace(/\r$/, ''));
      if (wrong !== undefined) {
        const code = wrong.symbol === true ? 'symbol-mismatch' : 'row-malformed';
        throw new CryptodlError(code, `${name}: the line at byte ${bytes + start}: ${wrong.text}`);
      }
    }
    bytes += chunk.length;
  };
}
