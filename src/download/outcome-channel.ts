/** Outcomes on their way from the run to whoever looks at them, with a bound. */
import type { TaskOutcome } from '../model/outcome.js';

/** Outcomes that nobody has looked at yet, before the run waits. */
const ROOM = 1000;

export class OutcomeChannel {
  #outcomes: TaskOutcome[] = [];
  #isOver = false;
  #isUnread = false;
  #isUnbounded = false;
  #reader: (() => void) | undefined;
  #writers: (() => void)[] = [];

  /** Resolves when there is room for more. */
  async push(outcome: TaskOutcome): Promise<void> {
    if (this.#isUnread) return;
    this.#outcomes.push(outcome);
    this.#reader?.();
    if (this.#isUnbounded || this.#outcomes.length < ROOM) return;
    await new Promise<void>((resolve) => {
      this.#writers.push(resolve);
    });
  }

  /** No outcome comes any more. */
  end(): void {
    this.#isOver = true;
    this.#reader?.();
  }

  /** Nobody looks, now or ever: outcomes are let go. */
  discard(): void {
    this.#isUnread = true;
    this.#outcomes = [];
    this.#letWrite();
  }

  /** The reader itself waits for the end: it cannot make room meanwhile. */
  unbound(): void {
    this.#isUnbounded = true;
    this.#letWrite();
  }

  /** To be called once. */
  async *read(): AsyncGenerator<TaskOutcome> {
    for (;;) {
      const outcomes = this.#outcomes;
      this.#outcomes = [];
      this.#letWrite();
      yield* outcomes;
      if (this.#outcomes.length > 0) continue;
      if (this.#isOver) return;
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
      });
    }
  }

  #letWrite(): void {
    for (const resolve of this.#writers.splice(0)) resolve();
  }
}
