/** Where a body goes while it arrives: memory when small, a spool file when large, hashed on the way. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { Body } from '../fetch.js';

const WRITE_BYTES = 1024 * 1024;

export interface SinkOptions {
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
  #file: FileHandle | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: SinkOptions) {
    this.#options = options;
    this.#md5 = options.md5 ? createHash('md5') : undefined;
  }

  /** Takes one chunk. A promise means: do not give me more before it is fulfilled (it rejects on disk errors). */
  write(chunk: Buffer): Promise<void> | undefined {
    this.size += chunk.length;
    this.#sha256.update(chunk);
    this.#md5?.update(chunk);
    this.#chunks.push(chunk);
    this.#pending += chunk.length;
    const spooling = this.#file !== undefined || this.size > this.#options.spoolAboveBytes;
    if (!spooling || this.#options.spoolPath === undefined || this.#pending < WRITE_BYTES) return undefined;
    this.#writing = this.#flush(this.#options.spoolPath);
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

  /** Lets go of the file; what was written stays for the next attempt to overwrite. */
  async discard(): Promise<void> {
    await this.#writing?.catch(() => undefined);
    await this.#file?.close();
  }

  async #flush(path: string): Promise<void> {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#pending = 0;
    this.#file ??= await open(path, 'w');
    let left = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    if (left === 0) return;
    const { bytesWritten } = await this.#file.writev(chunks);
    left -= bytesWritten;
    // A short write is legal; the rest goes out piece by piece.
    if (left > 0) await this.#file.writeFile(Buffer.concat(chunks).subarray(bytesWritten));
  }
}
