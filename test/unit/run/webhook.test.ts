/** `--alert-webhook`: a POST with retries and a time limit, over real sockets. */
import { describe, expect, it } from 'vitest';
import { LIMIT_MS, send } from '../../../src/run/monitor/run-notices.js';
import { refusal } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';
import { wirePools } from '../../helpers/wire.js';
import { closedPort, httpAnswer, wireServer } from '../../helpers/wire-server.js';

const MESSAGE = { alerts: [{ id: 'retry-rate', text: 'über 10 %' }] };

function posting(url: string) {
  const clock = new VirtualClock();
  const posted = send(wirePools(), clock, url, MESSAGE);
  posted.catch(() => undefined);
  return { clock, posted };
}

/** Lets virtual time pass until the post has ended, also while it waits for a real socket. Resolves with the passed virtual milliseconds. */
async function drive({ clock, posted }: ReturnType<typeof posting>, stepMs = 50): Promise<number> {
  const begin = clock.monotonic();
  const over = new AbortController();
  const end = (): void => {
    over.abort();
  };
  posted.then(end, end);
  while (!over.signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (!over.signal.aborted) await clock.advance(stepMs);
  }
  return clock.monotonic() - begin;
}

/** Answers with these statuses, and with the last one from then on. */
async function answering(...statuses: number[]) {
  let requests = 0;
  return wireServer((socket) => {
    const status = statuses[Math.min(requests, statuses.length - 1)] ?? 500;
    requests += 1;
    socket.write(httpAnswer(status, 'OK'));
  });
}

describe('the webhook', () => {
  it('is sent four times at most', async () => {
    const { url, heads } = await answering(503);
    const post = posting(`${url}/secret`);
    await drive(post);
    expect((await refusal(post.posted)).message).toBe(`${new URL(url).host} answered 503`);
    expect(heads).toHaveLength(4);
    expect(post.clock.waiting).toBe(0);
  });

  it.each([302, 400, 404, 410])('is not retried after %d', async (status) => {
    const { url, heads } = await answering(status);
    const error = await refusal(posting(`${url}/secret`).posted);
    expect(error.message).toBe(`${new URL(url).host} answered ${status}`);
    expect(heads).toHaveLength(1);
  });

  it('is given up during its second attempt, at most ten seconds after the first attempt began', async () => {
    const { url, heads } = await wireServer(() => undefined);
    const post = posting(`${url}/secret`);
    const ms = await drive(post);
    const error = await refusal(post.posted);
    expect(error.message).toContain(`${new URL(url).host}: no answer within`);
    expect(ms).toBeGreaterThan(5000);
    expect(ms).toBeLessThanOrEqual(LIMIT_MS + 50);
    expect(heads).toHaveLength(2);
    expect(post.clock.waiting).toBe(0);
  });

  it('is retried when nothing listens, and the path is not told', async () => {
    const port = await closedPort();
    const post = posting(`http://127.0.0.1:${port}/secret`);
    const ms = await drive(post);
    const error = await refusal(post.posted);
    expect(error.code).toBe('connect-failed');
    expect(error.message).not.toContain('secret');
    expect(ms).toBeGreaterThanOrEqual(250 + 500 + 1000);
  });
});
