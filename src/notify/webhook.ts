/** `--alert-webhook`: sends the alerts of a run, and the end of a failed run, as JSON to an address of the user. */
import type { Pools } from '../http/transport/pool.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { closePools, isAccepted, openPools, send } from './send.js';
import type { NotifyOptions } from './send.js';

/** The end of a run waits for the answer: at most this long, all attempts together. */
export const WEBHOOK_LIMIT_MS = 10_000;
const ATTEMPT_MS = 5000;
const DELAYS_MS = [250, 500, 1000];

/** Resolves when the message has arrived or all attempts have failed, which causes one warning. */
export async function postAlerts(options: NotifyOptions, message: object): Promise<void> {
  let pools: readonly Pools[] = [];
  try {
    pools = openPools(options);
    await postWithRetries({ pools, clock: options.clock, url: options.url }, message);
  } catch (error) {
    options.warn(`--alert-webhook: ${toCryptodlError(error).message}`);
  } finally {
    await closePools(pools);
  }
}

export interface WebhookTarget {
  readonly pools: readonly Pools[];
  readonly clock: Clock;
  readonly url: string;
}

/** Rejects with the error of the last attempt. */
export async function postWithRetries({ pools, clock, url }: WebhookTarget, message: object): Promise<void> {
  const endsAt = clock.monotonic() + WEBHOOK_LIMIT_MS;
  for (let attempt = 0; ; attempt += 1) {
    const timeoutMs = Math.min(ATTEMPT_MS, endsAt - clock.monotonic());
    const error = await failureOf(send({ pools, clock, timeoutMs }, url, message), url);
    if (error === undefined) return;
    const delayMs = DELAYS_MS[attempt];
    if (!error.retryable || delayMs === undefined || clock.monotonic() + delayMs >= endsAt) throw error;
    await clock.sleep(delayMs);
  }
}

async function failureOf(answer: Promise<number>, url: string): Promise<CryptodlError | undefined> {
  try {
    const status = await answer;
    if (isAccepted(status)) return undefined;
    const mayPass = status >= 500 || status === 429;
    return new CryptodlError(
      mayPass ? 'http-server-error' : 'http-refused',
      `${new URL(url).host} answered ${status}`,
    );
  } catch (error) {
    return toCryptodlError(error);
  }
}
