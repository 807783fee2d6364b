/** How much of a window's budget is used: by this process, or by all of this machine. */

export interface WindowCount {
  /** Permits used in the window with this number. */
  used(window: number): number;
  /** Takes so many, if there is room for them: then true. */
  take(window: number, weight: number, permits: number): boolean;
  /** At least so many were used, says the server. */
  raise(window: number, used: number): void;
  /** Permits that were taken and never sent. */
  giveBack(window: number, weight: number): void;
}

export class OwnCount implements WindowCount {
  #window = Number.NaN;
  #used = 0;

  used(window: number): number {
    this.#enter(window);
    return this.#used;
  }

  take(window: number, weight: number, permits: number): boolean {
    this.#enter(window);
    if (this.#used + weight > permits) return false;
    this.#used += weight;
    return true;
  }

  raise(window: number, used: number): void {
    this.#enter(window);
    this.#used = Math.max(this.#used, used);
  }

  giveBack(window: number, weight: number): void {
    if (window === this.#window) this.#used -= weight;
  }

  #enter(window: number): void {
    if (window === this.#window) return;
    this.#window = window;
    this.#used = 0;
  }
}
