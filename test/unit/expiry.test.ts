import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Expiry } from '../../src/http/transport/expiry.js';

describe('the end of an attempt', () => {
  it('has the reason that came first, for the function and for the signal', () => {
    const outer = new AbortController();
    const expiry = new Expiry(outer.signal);
    const reasons: unknown[] = [];
    expiry.onOver((reason) => reasons.push(reason));
    const { signal } = expiry;
    expiry.end('first');
    outer.abort('second');
    expiry.end('third');
    expect(reasons).toEqual(['first']);
    expect([signal.aborted, signal.reason]).toEqual([true, 'first']);
  });

  it('reaches a function and a signal that come later', () => {
    const outer = new AbortController();
    const expiry = new Expiry(outer.signal);
    outer.abort('stopped');
    const reasons: unknown[] = [];
    expiry.onOver((reason) => reasons.push(reason));
    expect(reasons).toEqual(['stopped']);
    expect([expiry.signal.aborted, expiry.signal.reason]).toEqual([true, 'stopped']);
  });

  it('reaches only the exchange that a redirect has begun', () => {
    const expiry = new Expiry(new AbortController().signal);
    const ended: string[] = [];
    expiry.onOver(() => ended.push('first'));
    expiry.onOver(() => ended.push('second'));
    expiry.end('late');
    expect(ended).toEqual(['second']);
  });

  it('leaves no listener on the signal of the run', () => {
    const { signal } = new AbortController();
    const expiry = new Expiry(signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expiry.release();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
