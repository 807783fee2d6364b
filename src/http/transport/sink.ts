/** Takes the bytes of a body into memory, or a large body into a spool file, and hashes them. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { writeAllChunks } from '../../files/disk.js';
import { CryptodlError } from '../../model/errors.js';
import type { Body, FetchRequest, PartialBody } from '../fetch.js';

const WRITE_BYTES = 1024 * 1024;
/** Larger bodies go to the spool path, if there is one. Bytes. */
const SPOOL_ABOVE_BYTES = 8 * 1024 * 1024;

interface SinkOptions {
  readonly spoolPath?: string;
  readonly spoolAboveBytes: number;
  readonly md5: boolean;
}

export class Sink {
  size = 0;
  readonly #options: SinkOptions;
  readonly #sha256 = createHash('sha256');
  readonly #md5;
  #chunks: Buffer[] = [];
  #pending = 0;
  #written = 0;
  #file: FileHandle | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: SinkOptions) {
    this.#options = options;
    this.#md5 = options.md5 ? createHash('md5') : undefined;
  }

  /**
   * Continues after the first `bytes` of the spool file. They are hashed from the disk, so that the digests cover the whole
   * file. Undefined if the file is shorter.
   */
  static async resume(
    options: SinkOptions & { spoolPath: string },
    bytes: number,
  ): Promise<Sink | undefined> {
    const sink = new Sink(options);
    const file = await open(options.spoolPath, 'r+');
    sink.#file = file;
    const stream = file.createReadStream({
      start: 0,
      end: bytes - 1,
      autoClose: false,
      highWaterMark: WRITE_BYTES,
    });
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) sink.#hash(chunk);
      if (sink.size === bytes) {
        await file.truncate(bytes);
        sink.#written = bytes;
        return sink;
      }
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
    return undefined;
  }

  /** Takes one chunk. A caller that waits for a returned promise before the next chunk bounds the memory. It rejects on disk errors. */
  write(chunk: Buffer): Promise<void> | undefined {
    this.#hash(chunk);
    this.#chunks.push(chunk);
    this.#pending += chunk.length;
    const spooling = this.#file !== undefined || this.size > this.#options.spoolAboveBytes;
    if (!spooling || this.#options.spoolPath === undefined || this.#pending < WRITE_BYTES) return undefined;
    const { spoolPath } = this.#options;
    this.#writing = this.#writing?.then(() => this.#flush(spoolPath)) ?? this.#flush(spoolPath);
    return this.#writing;
  }

  async end(): Promise<{ body: Body; sha256: string; md5?: string }> {
    await this.#writing;
    const digests = {
      sha256: this.#sha256.digest('hex'),
      ...(this.#md5 === undefined ? {} : { md5: this.#md5.digest('hex') }),
    };
    if (this.#file === undefined || this.#options.spoolPath === undefined) {
      const bytes =
        this.#chunks.length === 1 ? (this.#chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(this.#chunks);
      return { body: { kind: 'memory', bytes }, ...digests };
    }
    await this.#flush(this.#options.spoolPath);
    await this.#file.close();
    return { body: { kind: 'file', path: this.#options.spoolPath, size: this.size }, ...digests };
  }

  /** Closes the file. Resolves with the number of its bytes, for the next attempt; 0 without a file or after a disk error. */
  async discard(): Promise<number> {
    try {
      await this.#writing;
      if (this.#file === undefined || this.#options.spoolPath === undefined) return 0;
      await this.#flush(this.#options.spoolPath);
      return this.size;
    } catch {
      return 0;
    } finally {
      await this.#file?.close();
    }
  }

  #hash(chunk: Buffer): void {
    this.size += chunk.length;
    this.#sha256.update(chunk);
    this.#md5?.update(chunk);
  }

  async #flush(path: string): Promise<void> {
    const chunks = this.#chunks;
    const from = this.#written;
    this.#chunks = [];
    this.#written += this.#pending;
    this.#pending = 0;
    this.#file ??= await open(path, 'w');
    await writeAllChunks(this.#file, chunks, from);
  }
}

/** A sink that continues the part of the body that an earlier attempt left; undefined if that part cannot be read. */
export async function heldPart(request: FetchRequest, { bytes }: PartialBody): Promise<Sink | undefined> {
  const { spoolPath, ...options } = sinkOptions(request);
  if (spoolPath === undefined) return undefined;
  try {
    return await Sink.resume({ ...options, spoolPath }, bytes);
  } catch {
    // If the kept part cannot be read, the body is fetched from its beginning.
    return undefined;
  }
}

export function sinkOptions(request: FetchRequest): SinkOptions {
  return {
    ...(request.spoolPath === undefined ? {} : { spoolPath: request.spoolPath }),
    spoolAboveBytes: request.spoolAboveBytes ?? SPOOL_ABOVE_BYTES,
    md5: request.expect?.md5 !== undefined,
  };
}

// The request for the rest of a body: `Range` with `If-Range`, so that the server sends a changed object from its beginning.
// Source: RFC 9110, sections 13.1.5, 14.2 and 14.4.

type Headers = Readonly<Record<string, string>>;

export function rangeHeaders({ bytes, etag }: PartialBody): Record<string, string> {
  return { range: `bytes=${bytes}-`, 'if-range': etag };
}

/** The strong ETag, with its quotes; undefined for a weak or absent one. Equal weak ETags do not mean equal bytes. */
export function strongEtag(headers: Headers): string | undefined {
  const etag = headers['etag'];
  return etag !== undefined && /^"[^"]+"$/.test(etag) ? etag : undefined;
}

/** The error for a 206 that does not continue `partial`; undefined if it does. */
export function refuseRange(
  url: string,
  partial: PartialBody | undefined,
  headers: Headers,
): CryptodlError | undefined {
  const { host } = new URL(url);
  const refuse = (problem: string): CryptodlError => new CryptodlError('http-protocol', `${host} ${problem}`);
  if (partial === undefined) return refuse('answered 206 to a request for the whole body');
  const range = headers['content-range'] ?? '';
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? [];
  if (Number(first) !== partial.bytes || Number(last) + 1 !== Number(total))
    return refuse(
      `answered 206 with Content-Range "${range}" to a request for the rest from byte ${partial.bytes} on`,
    );
  const etag = strongEtag(headers);
  if (etag !== partial.etag)
    return refuse(`answered 206 for ${etag ?? 'no ETag'} to a request for ${partial.etag}`);
  return undefined;
}
