/** Names of files and folders from any text. */

/** Device names of Windows, with or without an ending. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

// eslint-disable-next-line no-control-regex -- the expression must match control characters
const UNSAFE = /[\u0000-\u001f\u007f/\\:*?"<>|%]/g;

/**
 * Converts any text to one file or folder name in raw UTF-8. Percent-encodes control characters, `/\:*?"<>|%`, a first dot, a
 * last dot or space, and the first character of a device name. `originalName` converts the name back.
 */
export function safeName(name: string): string {
  let safe = name.replaceAll(UNSAFE, encodeCharacter);
  if (RESERVED.test(safe) || safe.startsWith('.')) safe = encodeCharacter(safe.charAt(0)) + safe.slice(1);
  if (/[. ]$/.test(safe)) safe = safe.slice(0, -1) + encodeCharacter(safe.slice(-1));
  return safe === '' ? '%' : safe;
}

const encodeCharacter = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** The inverse of `safeName`. */
export function originalName(safe: string): string {
  if (safe === '%') return '';
  return safe.replaceAll(/%([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** An archive key as a path relative to the root of the lake (`--format zip`) or the quarantine. */
export const safeKeyPath = (key: string): string => key.split('/').map(safeName).join('/');
