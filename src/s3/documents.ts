/** Reads the documents of S3 about multipart uploads. */
import { CryptodlError } from '../model/errors.js';
import { isLabel } from '../text/label.js';
import { readXml } from '../text/xml.js';
import type { XmlElement } from '../text/xml.js';

/** A multipart upload that was neither completed nor aborted. */
export interface UnfinishedUpload {
  /** Relative to the folder of the lake. */
  readonly key: string;
  readonly uploadId: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

interface UploadsPage {
  readonly uploads: readonly UnfinishedUpload[];
  /** The query for the next page; undefined after the last page. */
  readonly next: Readonly<Record<string, string>> | undefined;
}

/** Keys are whole keys. Throws `listing-malformed` for anything but a complete list of uploads. */
export function parseUploads(body: Buffer): UploadsPage {
  const page = rootOf(body, 'ListMultipartUploadsResult');
  const isEncoded = textIn(page, 'EncodingType') === 'url';
  const name = (text: string): string => (isEncoded ? urlDecoded(text) : text);
  const uploads = page.children
    .filter((child) => child.name === 'Upload')
    .map((upload) => {
      const startedAt = Date.parse(needed(upload, 'Initiated'));
      if (Number.isNaN(startedAt)) throw malformed('an upload has no date');
      return { key: name(needed(upload, 'Key')), uploadId: needed(upload, 'UploadId'), startedAt };
    });
  if (textIn(page, 'IsTruncated') !== 'true') return { uploads, next: undefined };
  const marker = name(needed(page, 'NextKeyMarker'));
  const idMarker = textIn(page, 'NextUploadIdMarker') ?? '';
  return {
    uploads,
    next: { 'key-marker': marker, ...(idMarker === '' ? {} : { 'upload-id-marker': idMarker }) },
  };
}

/** The id of a new multipart upload. */
export function parseUploadId(body: Buffer): string {
  return needed(rootOf(body, 'InitiateMultipartUploadResult'), 'UploadId');
}

/** The ETag of a completed upload, without its quotes. Throws for an error document, which S3 may send with status 200. */
export function parseCompleted(body: Buffer): string {
  return (textIn(rootOf(body, 'CompleteMultipartUploadResult'), 'ETag') ?? '').replaceAll('"', '');
}

/** Blanks may stand before the document: S3 sends them while it puts the parts together. */
function rootOf(body: Buffer, name: string): XmlElement {
  const text = body.toString('utf8').trim();
  let root: XmlElement | undefined;
  try {
    root = readXml(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (root?.name === name) return root;
  if (root?.name === 'Error')
    throw new CryptodlError(
      'http-server-error',
      `the server answered ${textIn(root, 'Code') ?? 'an error'} with status 200`,
    );
  throw malformed(`not a ${name}: ${JSON.stringify(text.slice(0, 80))}`);
}

function needed(parent: XmlElement, name: string): string {
  const text = textIn(parent, name) ?? '';
  if (text === '') throw malformed(`<${parent.name}> has no ${name}`);
  if (name !== 'Key' && !isLongLabel(text)) throw malformed(`the ${name} in <${parent.name}> is no label`);
  return text;
}

/** Ids of uploads are longer than other labels. */
function isLongLabel(text: string): boolean {
  return text.length <= 2048 && (text.match(/.{1,256}/gsu) ?? []).every((part) => isLabel(part));
}

function textIn(parent: XmlElement, name: string): string | undefined {
  const [found, more] = parent.children.filter((child) => child.name === name);
  if (more !== undefined) throw malformed(`<${parent.name}> has <${name}> twice`);
  return found?.text;
}

function urlDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw malformed(`a listed name is not url-encoded: ${text.slice(0, 80)}`);
  }
}

function malformed(message: string): CryptodlError {
  return new CryptodlError('listing-malformed', message);
}
