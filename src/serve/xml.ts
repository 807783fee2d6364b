const NAMED: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as XML content; control characters become numeric references, as S3 writes them. */
function escapeXml(text: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is looked for
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (c) => NAMED[c] ?? `&#x${c.charCodeAt(0).toString(16)};`);
}

/** One element with text content. */
export function element(name: string, text: string | number | boolean): string {
  return `<${name}>${escapeXml(String(text))}</${name}>`;
}

export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
