/** Quoting: names and texts from input enter SQL only through these functions. */

/** A quoted identifier. Throws a RangeError for a NUL character. */
export function quoteName(name: string): string {
  if (name.includes('\0')) throw new RangeError('a name contains a NUL character');
  return `"${name.replaceAll('"', '""')}"`;
}

/** A quoted string literal. Throws a RangeError for a NUL character. */
export function quoteText(text: string): string {
  if (text.includes('\0')) throw new RangeError('a text contains a NUL character');
  return `'${text.replaceAll("'", "''")}'`;
}

/** The literal of the path of one file that a table function reads. Without it, DuckDB takes the path for a pattern of paths. */
export const quotePath = (path: string): string => quoteText(path.replaceAll(/[*?[]/g, '[$&]'));

/** A literal for a time in epoch milliseconds, cut to the second: a TIMESTAMP, or with `isZoned` a TIMESTAMPTZ. */
export function timestampLiteral(epochMs: number, isZoned = false): string {
  const text = new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ');
  return isZoned ? `TIMESTAMPTZ '${text}+00'` : `TIMESTAMP '${text}'`;
}
