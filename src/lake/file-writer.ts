/**
 * Writes, syncs and renames many small files on a worker thread. On the event loop, each file would need several round trips to the
 * thread pool.
 */
import { Worker } from 'node:worker_threads';
import type { Publication } from './publish.js';

/** A file that is written to `staged` and then renamed to `target`. */
export interface FileToWrite extends Publication {
  /** Bytes, or the path of a file to copy. */
  readonly content: Uint8Array | string;
}

/** The message to the worker thread. `stage` writes and syncs the files, `rename` gives them their final names. */
export interface FileJob {
  readonly id: number;
  readonly step: 'stage' | 'rename';
  readonly files: readonly FileToWrite[];
}

/** The answer of the worker thread when a job fails. */
export interface FileError {
  readonly message: string;
  readonly code?: string | undefined;
  readonly errno?: number | undefined;
  readonly syscall?: string | undefined;
}

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class FileWriter {
  #thread: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  /** Resolves when all files are staged and synced. Rejects with the error of the disk, and leaves no staged file then. */
  stage(files: readonly FileToWrite[]): Promise<void> {
    const { packed, buffer } = packContents(files);
    return this.#send('stage', packed, [buffer]);
  }

  /**
   * Resolves when all staged files have their final names, in the given order. Rejects with the error of the disk; files that were
   * already renamed stay.
   */
  async rename(files: readonly FileToWrite[]): Promise<void> {
    if (files.length === 0) return;
    await this.#send(
      'rename',
      files.map((file) => ({ ...file, content: '' })),
    );
  }

  #send(
    step: FileJob['step'],
    files: readonly FileToWrite[],
    transferred: ArrayBuffer[] = [],
  ): Promise<void> {
    const thread = (this.#thread ??= this.#start());
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      thread.ref();
      thread.postMessage({ id, step, files } satisfies FileJob, transferred);
    });
  }

  async close(): Promise<void> {
    await this.#thread?.terminate();
    this.#thread = undefined;
  }

  #start(): Worker {
    const thread = new Worker(new URL('../lake/file-worker.js', import.meta.url));
    thread.on('message', ({ id, error }: { id: number; error?: FileError }) => {
      this.#end(id, error === undefined ? undefined : Object.assign(new Error(error.message), error));
    });
    thread.on('error', (error) => {
      for (const id of this.#waiting.keys()) this.#end(id, error);
      this.#thread = undefined;
    });
    return thread;
  }

  #end(id: number, error: Error | undefined): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#thread?.unref();
    if (error === undefined) waiting?.resolve();
    else waiting?.reject(error);
  }
}

/** Copies all contents to one buffer, which is transferred to the worker. A content can only be transferred with the whole buffer around it. */
function packContents(files: readonly FileToWrite[]): { packed: FileToWrite[]; buffer: ArrayBuffer } {
  const sizes = files.map(({ content }) => (typeof content === 'string' ? 0 : content.length));
  const buffer = new ArrayBuffer(sizes.reduce((sum, size) => sum + size, 0));
  let at = 0;
  const packed = files.map((file, index) => {
    if (typeof file.content === 'string') return file;
    const content = new Uint8Array(buffer, at, sizes[index]);
    content.set(file.content);
    at += content.length;
    return { ...file, content };
  });
  return { packed, buffer };
}
