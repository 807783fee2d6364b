/** Passes the outcomes of tasks to the reader of the run. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { TaskOutcome } from '../model/outcome.js';

/** The run waits while this many outcomes are unread: half of them wait on each side of the stream. */
const ROOM = 1000;

/** A bounded queue of outcomes for one reader. */
export class OutcomeChannel {
  readonly #stream = new PassThrough({ objectMode: true, highWaterMark: ROOM / 2 });

  constructor() {
    // Each waiting task adds a listener.
    this.#stream.setMaxListeners(0);
  }

  /** Resolves when there is room for more. */
  async push(outcome: TaskOutcome): Promise<void> {
    if (!this.#stream.write(outcome)) await once(this.#stream, 'drain');
  }

  /** To be called after the last outcome. */
  end(): void {
    this.#stream.end();
  }

  /** Drops the unread outcomes and all later ones. */
  discard(): void {
    this.#stream.resume();
  }

  /** To be called once. */
  read(): NodeJS.AsyncIterator<TaskOutcome> {
    return this.#stream.iterator({ destroyOnReturn: false });
  }
}
