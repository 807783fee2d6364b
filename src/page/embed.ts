/** Data inside a page. No text of the data can end its element or become markup. */
import { createHash } from 'node:crypto';
import { jsonText } from '../text/printable.js';

/** JSON for the inside of a `<script>` element. A parser reads the same value, except for masked passwords. */
export function embedded(value: object): string {
  return jsonText(value).replaceAll(
    /[<>&]/g,
    (character) => String.raw`\u00${character.charCodeAt(0).toString(16)}`,
  );
}

/** The source of an inline script or style in a Content-Security-Policy. */
export function hashSource(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}
