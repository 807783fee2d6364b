/** The documents of an S3 server. */

const HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n';

export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

export function wrapped(name: string, texts: Readonly<Record<string, string>>): string {
  const children = Object.entries(texts).map(([child, text]) => `<${child}>${escaped(text)}</${child}>`);
  return `<${name}>${children.join('')}</${name}>`;
}

export function errorXml(code: string, more: Readonly<Record<string, string>> = {}): string {
  return (
    HEAD + wrapped('Error', { Code: code, Message: `the server says ${code}`, ...more, RequestId: 'R1' })
  );
}

interface Listed {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly lastModified: number;
}

export function contentsXml(key: string, { bytes, etag, lastModified }: Listed): string {
  return wrapped('Contents', {
    Key: key,
    LastModified: new Date(lastModified).toISOString(),
    ETag: `"${etag}"`,
    Size: String(bytes.length),
    StorageClass: 'STANDARD',
  });
}
