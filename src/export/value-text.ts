/** SQL for texts of numbers and times. */
import { quoteName, quoteText } from '../convert/sql.js';

/**
 * The text of a number: its digits as the lake has them, without exponent. Of a DOUBLE, these are the fewest digits that give the same
 * DOUBLE again.
 */
export function numberText(column: string): string {
  const name = quoteName(column);
  const text = `CAST(${name} AS VARCHAR)`;
  const trimmed = (digits: number): string =>
    `rtrim(rtrim(CAST(CAST(${text} AS DECIMAL(38, ${digits})) AS VARCHAR), '0'), '.')`;
  // A DECIMAL has 38 digits, so the digits behind the point depend on the size of the number.
  const size = `abs(CAST(${name} AS DOUBLE))`;
  const plain = `CASE WHEN ${size} >= 1e15 THEN CAST(CAST(${text} AS DECIMAL(38, 0)) AS VARCHAR) WHEN ${size} >= 1 THEN ${trimmed(18)} ELSE ${trimmed(37)} END`;
  const short = `CASE WHEN typeof(${name}) = 'VARCHAR' THEN ${text} ELSE regexp_replace(${text}, '\\.0$', '') END`;
  return `CASE WHEN contains(lower(${text}), 'e') THEN ${plain} ELSE ${short} END`;
}

/** Microseconds since 1970 of a column with times. */
export function epochUs(column: string): string {
  return `epoch_us(${quoteName(column)})`;
}

/** A time in UTC in the form `us`, `ms`, `s` or `iso`, or by a pattern of strftime. All times of a column have equally many digits. */
export function timeText(column: string, form: string): string {
  const us = epochUs(column);
  if (form === 'us') return us;
  if (form === 'ms') return `${us} // 1000`;
  if (form === 's') return `${us} // 1000000`;
  const time = `make_timestamp(${us})`;
  const whole = `strftime(${time}, '%Y-%m-%dT%H:%M:%S')`;
  if (form === 'iso') return `${whole} || '.' || lpad(CAST(${us} % 1000000 AS VARCHAR), 6, '0') || 'Z'`;
  return `strftime(${time}, ${quoteText(form)})`;
}
