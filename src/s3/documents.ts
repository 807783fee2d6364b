/** Reads the documents of S3 about multipart uploads. */
import { CryptodlError } from '../model/errors.js';
import { childrenOf, malformed, nameReader, neededIn, rootOf, textIn } from '../source/s3-xml.js';
import { isLabel } from '../text/label.js';
import type { XmlElement } from '../text/xml.js';
import { errorName } from './refusals.js';

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
  const name = nameReader(page);
  const uploads = childrenOf(page, 'Upload').map((upload) => {
    const startedAt = Date.parse(neededIn(upload, 'Initiated'));
    if (Number.isNaN(startedAt)) throw malformed('an upload has no date');
    return { key: name(neededIn(upload, 'Key')), uploadId: uploadIdIn(upload), startedAt };
  });
  if (textIn(page, 'IsTruncated') !== 'true') return { uploads, next: undefined };
  const marker = name(neededIn(page, 'NextKeyMarker'));
  const idMarker = textIn(page, 'NextUploadIdMarker') ?? '';
  return {
    uploads,
    next: { 'key-marker': marker, ...(idMarker === '' ? {} : { 'upload-id-marker': idMarker }) },
  };
}

/** The id of a new multipart upload. */
export function parseUploadId(body: Buffer): string {
  return uploadIdIn(rootOf(body, 'InitiateMultipartUploadResult'));
}

/** The ETag of a completed upload, without its quotes. S3 may send an error document with status 200: it is an error of the server. */
export function parseCompleted(body: Buffer): string {
  const error = errorName(body.toString('utf8'));
  if (error !== undefined)
    throw new CryptodlError('http-server-error', `the server answered ${error} with status 200`);
  return (textIn(rootOf(body, 'CompleteMultipartUploadResult'), 'ETag') ?? '').replaceAll('"', '');
}

/** Ids of uploads are longer than other labels. */
function uploadIdIn(parent: XmlElement): string {
  const text = neededIn(parent, 'UploadId');
  const isLongLabel = text.length <= 2048 && (text.match(/.{1,256}/gsu) ?? []).every((part) => isLabel(part));
  if (isLongLabel) return text;
  throw malformed(`the UploadId in <${parent.name}> is no label`);
}
