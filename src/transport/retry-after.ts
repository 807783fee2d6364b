/**
 * Milliseconds that `Retry-After` asks for, as seconds or as an HTTP date against the server's own `Date`;
 * not clipped here. A date has whole seconds, so one is added. Undefined when absent, past or garbage.
 * Source: RFC 9110, section 10.2.3.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const value = headers['retry-after']?.trim();
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return Math.max(1, Number(value)) * 1000;
  // Date.parse finds a year in almost any text ("wait 35"); dates in HTTP end in GMT.
  const until = value.endsWith('GMT') ? Date.parse(value) : Number.NaN;
  const serverNow = Date.parse(headers['date'] ?? '');
  const waitMs = until - serverNow + 1000;
  // Not a number where one of the two is no date.
  return waitMs > 1000 ? waitMs : undefined;
}
