import { createServer, connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { notBefore, systemClock } from '../../../src/model/clock.js';

/** The process stands still, as after SIGSTOP or on a machine that has other things to do. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('a timer of the system clock', () => {
  it('lets the process read data that arrived during a suspension before it fires', async () => {
    const server = createServer((socket) => {
      socket.end('here');
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    onTestFinished(() => {
      socket.destroy();
      server.close();
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    const happened: string[] = [];
    const timer = systemClock.timer(20, () => happened.push('fired'));
    const read = new Promise<void>((resolve) => {
      socket.on('data', () => {
        happened.push('read');
        timer.restart();
        resolve();
      });
    });
    standStill(600);
    await read;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(happened).toEqual(['read', 'fired']);
  });

  it('fires when nothing came, and once only', async () => {
    let fired = 0;
    await new Promise<void>((resolve) => {
      systemClock.timer(20, () => {
        fired += 1;
        setTimeout(resolve, 100);
      });
      standStill(600);
    });
    expect(fired).toBe(1);
  });

  it('does not fire once it is cancelled, also within its grace', async () => {
    let fired = 0;
    const timer = systemClock.timer(20, () => (fired += 1));
    setTimeout(() => {
      timer.cancel();
    }, 25);
    standStill(600);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(fired).toBe(0);
  });

  it('does not begin again once it is cancelled, also after it fired late', async () => {
    let fired = 0;
    const timer = systemClock.timer(20, () => {
      fired += 1;
      timer.cancel();
      timer.restart();
    });
    standStill(600);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(fired).toBe(1);
  });
});

describe('a clock that is not before a time', () => {
  const now = 1_000_000;
  const clock = { ...systemClock, now: () => now };

  it.each([
    ['is set forward by the difference', now + 5000, now + 5000],
    ['stays when it is ahead', now - 1, now],
    ['stays without a time', Number.NaN, now],
  ])('%s', (_, ms, expected) => {
    expect(notBefore(clock, ms).now()).toBe(expected);
  });
});
