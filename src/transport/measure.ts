/** Tells of every attempt on the wire, when it begins and how it ended. */
import type { Clock } from '../clock.js';
import type { FetchRequest, Layer } from '../fetch.js';

export interface Attempt {
  readonly request: FetchRequest;
  readonly attemptId: string;
  /** On the monotonic clock, like all moments here. */
  readonly sentAt: number;
  readonly endedAt: number;
  /** From the sending to the first byte of the answer; undefined when none came. */
  readonly firstByteMs: number | undefined;
  /** Undefined: it was answered. */
  readonly error: unknown;
}

export interface AttemptObserver {
  begun(): void;
  ended(attempt: Attempt): void;
}

export function measure(clock: Clock, observer: AttemptObserver): Layer {
  return (next) => async (request, context) => {
    // Until a socket is free it has not been sent.
    let sentAt = clock.monotonic();
    let firstByteMs: number | undefined;
    const tell = (error: unknown): void => {
      const endedAt = clock.monotonic();
      observer.ended({ request, attemptId: context.attemptId ?? '', sentAt, endedAt, firstByteMs, error });
    };
    observer.begun();
    try {
      const response = await next(request, {
        ...context,
        onActivity: (sign, bytes) => {
          if (sign === 'sent') sentAt = clock.monotonic();
          if (sign === 'headers') firstByteMs = clock.monotonic() - sentAt;
          context.onActivity?.(sign, bytes);
        },
      });
      tell(undefined);
      return response;
    } catch (error) {
      tell(error);
      throw error;
    }
  };
}
