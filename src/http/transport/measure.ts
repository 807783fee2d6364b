/** The layers that report requests, their waits and their attempts. */
import type { Clock } from '../../model/clock.js';
import type { AttemptEnd, FetchRequest, FetchResponse, Layer, WaitReason } from '../../model/fetch.js';

/** Each function is called at a beginning, and returns the function to call at the end. */
export interface RequestFollower {
  /** A request with all its attempts and waits. A failed request has no response. */
  onRequest?(request: FetchRequest): (response?: FetchResponse) => void;
  onWait?(reason: WaitReason, request: FetchRequest): () => void;
  onAttempt?(request: FetchRequest): (attempt: AttemptEnd) => void;
}

/** A layer outside of all layers that wait. It tells the followers of requests and waits. */
export function followLayer(followers: readonly RequestFollower[]): Layer {
  return (next) => async (request, context) => {
    const ends = followers.map((follower) => follower.onRequest?.(request));
    const onWait: typeof context.onWait = (reason) => {
      const endWaits = followers.map((follower) => follower.onWait?.(reason, request));
      return () => {
        for (const end of endWaits) end?.();
      };
    };
    let response: FetchResponse | undefined;
    try {
      response = await next(request, { ...context, onWait });
      return response;
    } finally {
      for (const end of ends) end?.(response);
    }
  };
}

export function measureLayer(clock: Clock, onAttempt: NonNullable<RequestFollower['onAttempt']>): Layer {
  return (next) => async (request, context) => {
    const begunAtMs = clock.monotonic();
    // Replaced when a socket is free and the request is sent.
    let sentAtMs = begunAtMs;
    let firstByteMs: number | undefined;
    let status: number | undefined;
    const ended = onAttempt(request);
    const { attemptId = '' } = context;
    const report = (error?: unknown): void => {
      const endedAtMs = clock.monotonic();
      ended({ request, attemptId, begunAtMs, sentAtMs, endedAtMs, firstByteMs, status, error });
    };
    try {
      const response = await next(request, {
        ...context,
        onActivity: (sign, value) => {
          if (sign === 'sent') sentAtMs = clock.monotonic();
          if (sign === 'headers') {
            firstByteMs = clock.monotonic() - sentAtMs;
            // After a redirect, the status is that of the last answer.
            status = value;
          }
          context.onActivity?.(sign, value);
        },
      });
      report();
      return response;
    } catch (error) {
      report(error);
      throw error;
    }
  };
}
