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

interface ListedUpload {
  readonly key: string;
  readonly id: string;
  readonly startedAt: number;
}

export function uploadsXml(
  uploads: readonly ListedUpload[],
  isEncoded: boolean,
  isTruncated: boolean,
): string {
  const last = uploads.at(-1);
  const entries = uploads.map(({ key, id, startedAt }) =>
    wrapped('Upload', { Key: key, UploadId: id, Initiated: new Date(startedAt).toISOString() }),
  );
  const next =
    isTruncated && last !== undefined
      ? `<NextKeyMarker>${escaped(last.key)}</NextKeyMarker><NextUploadIdMarker>${last.id}</NextUploadIdMarker>`
      : '';
  const encoding = isEncoded ? '<EncodingType>url</EncodingType>' : '';
  return `${HEAD}<ListMultipartUploadsResult>${encoding}${next}<IsTruncated>${isTruncated}</IsTruncated>${entries.join('')}</ListMultipartUploadsResult>`;
}
