/** The places for downloads and writers, and the memory for bodies. Several run queues of one process may share them. */
import PQueue from 'p-queue';
import { memoryLimitBytes } from '../../files/machine.js';

/** The maximum of bytes of all bodies in memory, besides a quarter of the memory. Large bodies are in the spool. */
const BODY_BYTES = 512 * 1024 * 1024;

export class Slots {
  readonly #downloads: PQueue;
  readonly #writers: PQueue;
  /** Partitions that wait until they may begin, in their order. */
  readonly #waiting: (() => void)[] = [];
  /** Partitions that have begun and are not written. */
  #unwritten = 0;
  #bytes = 0;
  readonly #mostBytes = Math.min(BODY_BYTES, memoryLimitBytes() / 4);

  /** `boundsUnwritten`: no more partitions may be unwritten than there are places for downloads, because a killed process loses them. */
  constructor(private readonly limits: { downloads: number; writers: number; boundsUnwritten?: boolean }) {
    this.#downloads = new PQueue({ concurrency: limits.downloads });
    this.#writers = new PQueue({ concurrency: limits.writers });
  }

  setDownloads(limit: number): void {
    this.#downloads.concurrency = limit;
    this.#beginNext();
  }

  /** Begins a partition, after the partitions that wait already. Undefined if it may begin at once. */
  beginPartition(): Promise<void> | undefined {
    const begun = new Promise<void>((begin) => {
      this.#waiting.push(begin);
    });
    this.#beginNext();
    return this.#waiting.length === 0 ? undefined : begun;
  }

  /** To be called when the partition is written, or has failed. */
  endPartition(): void {
    this.#unwritten -= 1;
    this.#beginNext();
  }

  #beginNext(): void {
    while (this.limits.boundsUnwritten !== true || this.#unwritten < this.#downloads.concurrency) {
      const begin = this.#waiting.shift();
      if (begin === undefined) return;
      this.#unwritten += 1;
      begin();
    }
  }

  /** Objects in flight, files that are written, and complete partitions that wait for a writer. */
  get state(): { inFlight: number; writing: number; toWrite: number } {
    return { inFlight: this.#downloads.pending, writing: this.#writers.pending, toWrite: this.#writers.size };
  }

  /**
   * Takes bytes for the body of one download. Back-pressure: resolves later while too many tasks exist, too many partitions wait for
   * a writer, or bodies take too much memory; undefined if there is room, because with ten million tasks an extra turn of the event
   * loop for each takes long. `partitions`: those of the caller, which will give bytes back.
   */
  take(bytes: number, partitions: ReadonlySet<Promise<void>>): Promise<void> | undefined {
    if (!this.#hasRoom(bytes, partitions)) return this.#wait(bytes, partitions);
    this.#bytes += bytes;
    return undefined;
  }

  async #wait(bytes: number, partitions: ReadonlySet<Promise<void>>): Promise<void> {
    await this.#downloads.onSizeLessThan(this.#downloads.concurrency);
    await this.#writers.onSizeLessThan(this.#writers.concurrency * 2);
    while (this.#isFull(bytes, partitions)) await Promise.race(partitions);
    this.#bytes += bytes;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }

  download<T>(work: () => Promise<T>): Promise<T> {
    return this.#downloads.add(work);
  }

  write<T>(work: () => Promise<T>): Promise<T> {
    return this.#writers.add(work);
  }

  #hasRoom(bytes: number, partitions: ReadonlySet<Promise<void>>): boolean {
    return (
      this.#downloads.size < this.#downloads.concurrency &&
      this.#writers.size < this.#writers.concurrency * 2 &&
      !this.#isFull(bytes, partitions)
    );
  }

  /** One partition alone may be larger than the budget. */
  #isFull(bytes: number, partitions: ReadonlySet<Promise<void>>): boolean {
    return this.#bytes + bytes > this.#mostBytes && partitions.size > 0;
  }
}
