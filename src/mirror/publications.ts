/** The publications of series, one at a time for each series. Changes that come during one are published together by the next. */
import { isConflict } from './publisher.js';

interface Publication {
  hasBegun: boolean;
  readonly done: Promise<void>;
}

export class Publications {
  readonly #publish: (seriesFolder: string) => Promise<void>;
  /** The last one of each series: it waits, it runs, or it has failed and no caller knows. */
  readonly #last = new Map<string, Publication>();

  constructor(publish: (seriesFolder: string) => Promise<void>) {
    this.#publish = publish;
  }

  begin(seriesFolder: string): void {
    const earlier = this.#last.get(seriesFolder);
    if (earlier?.hasBegun === false) return;
    const next: { hasBegun: boolean; done: Promise<void> } = { hasBegun: false, done: Promise.resolve() };
    this.#last.set(seriesFolder, next);
    next.done = this.#after(earlier, next, seriesFolder);
    // The callers of `done` get the error.
    next.done.catch(() => undefined);
  }

  /** Resolves when the changes before this call are published. */
  async done(seriesFolder: string): Promise<void> {
    const last = this.#last.get(seriesFolder);
    try {
      await last?.done;
    } finally {
      this.#forget(seriesFolder, last);
    }
  }

  /** Resolves when the publications of a series so far have ended, with or without an error. */
  async settled(seriesFolder: string): Promise<void> {
    await this.#last.get(seriesFolder)?.done.catch(() => undefined);
  }

  /** Resolves when all are published. A publication that failed unnoticed is repeated, and its error is thrown. */
  async end(): Promise<void> {
    for (const folder of this.#last.keys()) await this.settled(folder);
    for (const folder of this.#last.keys()) {
      this.#last.delete(folder);
      this.begin(folder);
      await this.done(folder);
    }
  }

  async #after(earlier: Publication | undefined, next: Publication, seriesFolder: string): Promise<void> {
    try {
      await earlier?.done;
    } catch (error) {
      // The mirror has forgotten the series, and with it the changes that came meanwhile.
      if (isConflict(error)) throw error;
    } finally {
      next.hasBegun = true;
    }
    await this.#publish(seriesFolder);
    this.#forget(seriesFolder, next);
  }

  #forget(seriesFolder: string, publication: Publication | undefined): void {
    if (this.#last.get(seriesFolder) === publication) this.#last.delete(seriesFolder);
  }
}
