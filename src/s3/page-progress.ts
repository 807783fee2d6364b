/** Notices a list that continues without end. The pages of S3 are in the order of UTF-8 bytes. */
import { byKey } from '../source/keys.js';

/** A server may send pages without names, for example because objects were removed. */
const MOST_IDLE_PAGES = 20;

export class PageProgress {
  #last = '';
  #idlePages = 0;

  /** Takes the names of the next page. Returns false after many pages without a name beyond those of earlier pages. */
  continues(names: readonly string[]): boolean {
    this.#idlePages += 1;
    for (const name of names) {
      if (byKey(name, this.#last) <= 0) continue;
      this.#last = name;
      this.#idlePages = 0;
    }
    return this.#idlePages <= MOST_IDLE_PAGES;
  }
}
