/**
 * Writes and syncs many small files on a worker thread. On the event loop, each file would need several round trips to the thread pool.
 */
import { Worker } from 'node:worker_threads';
import type { Publication } from '../files/publish.js';

/** A file that is written to `staged` and then renamed to `target`. */
export interface FileToWrite extends Publication {
  /** Bytes, or the path of a file to copy. */
  readonly content: Uint8Array | string;
}

/** The message to the worker thread. */
export interface FileJob {
  readonly id: number;
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
    // Copies, because a content can only be transferred with the whole buffer around it.
    const buffers: ArrayBuffer[] = [];
    const copies = files.map((file) => {
      if (typeof file.content === 'string') return file;
      const content = new Uint8Array(file.content);
      buffers.push(content.buffer);
      return { ...file, content };
    });
    const thread = (this.#thread ??= this.#start());
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      thread.ref();
      thread.postMessage({ id, files: copies } satisfies FileJob, buffers);
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
