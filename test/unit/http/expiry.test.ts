import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Expiries } from '../../../src/http/transport/timeout.js';

describe('the end of an attempt', () => {
  it('has the reason that came first', () => {
    const outer = new AbortController();
    const expiry = new Expiries().begin(outer.signal);
    const reasons: unknown[] = [];
    expiry.onOver((reason) => reasons.push(reason));
    expiry.end('first');
    outer.abort('second');
    expiry.end('third');
    expect(reasons).toEqual(['first']);
  });

  it('reaches a function that comes later', () => {
    const outer = new AbortController();
    const expiry = new Expiries().begin(outer.signal);
    outer.abort('stopped');
    const reasons: unknown[] = [];
    expiry.onOver((reason) => reasons.push(reason));
    expect(reasons).toEqual(['stopped']);
  });

  it('reaches only the exchange that a redirect has begun', () => {
    const expiry = new Expiries().begin(new AbortController().signal);
    const ended: string[] = [];
    expiry.onOver(() => ended.push('first'));
    expiry.onOver(() => ended.push('second'));
    expiry.end('late');
    expect(ended).toEqual(['second']);
  });

  it('reaches all attempts of a signal that are not released, and no others', () => {
    const expiries = new Expiries();
    const [outer, other] = [new AbortController(), new AbortController()];
    const ended: string[] = [];
    const begin = (name: string, { signal }: AbortController) => {
      const expiry = expiries.begin(signal);
      expiry.onOver((reason) => ended.push(`${name}: ${String(reason)}`));
      return expiry;
    };
    begin('first', outer);
    const released = begin('released', outer);
    begin('of another signal', other);
    begin('last', outer);
    expiries.release(outer.signal, released);
    outer.abort('stopped');
    expect(ended).toEqual(['first: stopped', 'last: stopped']);
  });

  it('leaves no listener on the signal of the run, and takes one for all attempts', () => {
    const { signal } = new AbortController();
    const expiries = new Expiries();
    const [first, second] = [expiries.begin(signal), expiries.begin(signal)];
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expiries.release(signal, first);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expiries.release(signal, second);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const third = expiries.begin(signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    for (let time = 0; time < 2; time += 1) expiries.release(signal, third);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
