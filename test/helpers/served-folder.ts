import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

import { XMLParser } from 'fast-xml-parser';

import { serveArchive } from '../../src/verbs/serve/serve.js';

const made: string[] = [];

/** A new temporary folder with these files; `removeFolders` takes it away again. */
export function folderWith(files: Readonly<Record<string, Buffer | string>>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cryptodl-serve-')));
  made.push(folder);
  for (const [key, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, key)), { recursive: true });
    writeFileSync(join(folder, key), content);
  }
  return folder;
}

export function removeFolders(): void {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** `cryptodl`'s archive server for a folder, on a free port of 127.0.0.1. */
export function serve(folder: string): ReturnType<typeof serveArchive> {
  return serveArchive({ directory: folder, host: '127.0.0.1', port: 0 });
}

export function digest(algorithm: 'md5' | 'sha256', content: Buffer | string): string {
  return createHash(algorithm).update(content).digest('hex');
}

/** Sends the target as it is: `fetch` would tidy up the dots. */
export async function raw(
  url: string,
  target: string,
  method = 'GET',
): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(url);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ hostname, port, path: target, method, agent: false }, resolve).on('error', reject).end();
  });
  return { status: response.statusCode ?? 0, body: await text(response) };
}

/** A listing page as an independent XML reader sees it: every value is text. */
export interface Page {
  readonly Name: string;
  readonly Prefix: string;
  readonly Marker?: string;
  readonly NextMarker?: string;
  readonly MaxKeys: string;
  readonly IsTruncated: string;
  readonly Contents?: readonly { Key: string; LastModified: string; ETag: string; Size: string }[];
  readonly CommonPrefixes?: readonly { Prefix: string }[];
}

/** As S3 writes listings and errors. */
export const parser = new XMLParser({
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  isArray: (name) => name === 'Contents' || name === 'CommonPrefixes',
});

/** Code and key of an S3 error document. */
export function errorOf(body: string): { Code?: string; Key?: string } {
  const parsed: { Error: { Code?: string; Key?: string } } = parser.parse(body);
  return parsed.Error;
}

/** One page of the listing. Throws when the status is not 200. */
export async function list(url: string, query: Readonly<Record<string, string>>): Promise<Page> {
  const search = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const response = await fetch(`${url}/data.binance.vision?${search.join('&')}`);
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${body}`);
  const parsed: { ListBucketResult: Page } = parser.parse(body);
  return parsed.ListBucketResult;
}

/** Keys and common prefixes of a page, in the order in which S3 counts them. */
export function entriesOf(page: Page): string[] {
  const keys = (page.Contents ?? []).map((object) => object.Key);
  const prefixes = (page.CommonPrefixes ?? []).map((common) => common.Prefix);
  return [...keys, ...prefixes].sort(byBytes);
}

export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
