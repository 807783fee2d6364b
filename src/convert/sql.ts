/** The one way for names and texts from outside to enter SQL. */

export function quoteName(name: string): string {
  if (name.includes('\0')) throw new RangeError('a name holds a NUL character');
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteText(text: string): string {
  if (text.includes('\0')) throw new RangeError('a text holds a NUL character');
  return `'${text.replaceAll("'", "''")}'`;
}
