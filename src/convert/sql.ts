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
export function quotePath(path: string): string {
  return quoteText(path.replaceAll(/[*?[]/g, '[$&]'));
}

/** A literal for a time in epoch milliseconds, cut to the second: a TIMESTAMP, or with `isZoned` a TIMESTAMPTZ. */
export function timestampLiteral(epochMs: number, isZoned = false): string {
  const text = new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ');
  return isZoned ? `TIMESTAMPTZ '${text}+00'` : `TIMESTAMP '${text}'`;
}

/**
 * A double up to this bound times 10^8 is off by less than a half, so its cast to a decimal with 8 digits after the point has the published
 * digits. The shortest text of a larger one has them too, which is slower.
 */
const DIRECT_BELOW = 10_000_000;

/** A number as a decimal of this type. `isExact`: the expression is a text or an integer, and not a double. */
export function decimalOf(expression: string, isExact: boolean, type: string): string {
  if (isExact) return `CAST(${expression} AS ${type})`;
  return `CASE WHEN abs(${expression}) < ${DIRECT_BELOW} THEN CAST(${expression} AS ${type}) ELSE CAST(CAST(${expression} AS VARCHAR) AS ${type}) END`;
}
