/** A layer that reports the beginning and the end of each attempt. */
import type { Clock } from '../../model/clock.js';
import type { AttemptEnd, FetchRequest, Layer } from '../fetch.js';

export interface AttemptObserver {
  begun(request: FetchRequest): void;
  ended(attempt: AttemptEnd): void;
}

export function measure(clock: Clock, observer: AttemptObserver): Layer {
  return (next) => async (request, context) => {
    const begunAt = clock.monotonic();
    // The request is sent when a socket is free.
    let sentAt = begunAt;
    let firstByteMs: number | undefined;
    const tell = (error: unknown): void => {
      const endedAt = clock.monotonic();
      observer.ended({
        request,
        attemptId: context.attemptId ?? '',
        begunAt,
        sentAt,
        endedAt,
        firstByteMs,
        error,
      });
    };
    observer.begun(request);
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
