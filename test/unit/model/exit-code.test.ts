import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { exitCode } from '../../../src/model/exit-code.js';
import { watchSignals } from '../../../src/model/io.js';
import type { Io } from '../../../src/model/io.js';
import type { RunStatus } from '../../../src/model/exit-code.js';

const CLEAN: RunStatus = {
  ended: undefined,
  signal: undefined,
  waitedTooLong: 0,
  failedRetryable: 0,
  failedPermanent: 0,
  holes: 0,
  partial: 0,
  strict: false,
  written: 0,
  nothingIsError: false,
};

/** In the order of the design: each applies whatever follows it. */
const RULES: readonly (readonly [string, Partial<RunStatus>, number])[] = [
  ['an interrupt', { signal: 'SIGINT' }, 130],
  ['a termination', { signal: 'SIGTERM' }, 143],
  ['wrong usage', { ended: 'usage' }, 2],
  ['a held lock', { ended: 'locked' }, 6],
  ['a wait that is too long for the run', { ended: 'wait-too-long' }, 7],
  ['--max-duration, before the work began', { ended: 'time-over' }, 3],
  ['a bug', { ended: 'bug' }, 1],
  ['tasks that waited too long', { waitedTooLong: 1 }, 7],
  ['failures of which one may succeed later', { failedRetryable: 1 }, 3],
  ['permanent failures', { failedPermanent: 1 }, 4],
  ['holes, with --strict', { strict: true, holes: 1 }, 4],
  ['nothing new, with --error-on-nothing', { nothingIsError: true }, 5],
  ['nothing', {}, 0],
];

it.each(RULES)('%s', (_, end, code) => {
  expect(exitCode({ ...CLEAN, ...end })).toBe(code);
});

it('of two rules that apply the first decides', () => {
  for (const [index, [, end, code]] of RULES.entries())
    for (const [, other] of RULES.slice(index + 1))
      expect(exitCode({ ...CLEAN, ...other, ...end })).toBe(code);
});

it('anything else that ended the run is fatal', () => {
  for (const ended of ['disk-full', 'disk', 'unreachable', 'manifest-damaged'] as const)
    expect(exitCode({ ...CLEAN, ended, failedRetryable: 9 })).toBe(1);
});

it('something new is enough for --error-on-nothing', () => {
  expect(exitCode({ ...CLEAN, nothingIsError: true, written: 1 })).toBe(0);
});

it('holes and partial objects are fine, except with --strict', () => {
  expect(exitCode({ ...CLEAN, holes: 3, partial: 2 })).toBe(0);
  expect(exitCode({ ...CLEAN, strict: true })).toBe(0);
  expect(exitCode({ ...CLEAN, strict: true, partial: 1 })).toBe(4);
});

it('of several jobs the most important code is the end, a signal before all', () => {
  const codes = [2, 1, 6, 7, 3, 4, 0] as const;
  for (const [index, code] of codes.entries()) {
    const others = codes.slice(index + 1);
    expect(exitCode({ parts: [...others, code, ...others] })).toBe(code);
  }
  expect(exitCode({ signal: 'SIGTERM', parts: [2, 0] })).toBe(143);
  expect(exitCode({ signal: 'SIGINT', parts: [143] })).toBe(130);
  expect(exitCode({ parts: [] })).toBe(0);
});

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a second signal, %s, ends the process with %i after either first one', (second, code) => {
  for (const first of ['SIGINT', 'SIGTERM'] as const) {
    const signals = new EventEmitter();
    const exits: number[] = [];
    const onSignal: Io['onSignal'] = (act) => {
      signals.on('signal', act);
      return () => signals.off('signal', act);
    };
    const exit = (exited: number): never => {
      exits.push(exited);
      throw new Error('the process has ended');
    };
    const { signal } = watchSignals({ onSignal, exit, signal: AbortSignal.abort() } as Io);
    signals.emit('signal', first);
    expect([signal.aborted, exits]).toEqual([true, []]);
    expect(() => signals.emit('signal', second)).toThrow('the process has ended');
    expect(exits).toEqual([code]);
  }
});

it.each([
  [{ lasting: false }, 0],
  [{ lasting: false, passing: true }, 3],
  [{ lasting: true, passing: true }, 4],
  [{ refused: 1, lasting: true }, 1],
  [{ refused: 1, parts: [3] }, 1],
  [{ failedChecks: 1 }, 1],
  [{ failedRetryable: 1, parts: [4] }, 3],
  [{ failedPermanent: 1, parts: [1] }, 1],
] as const)('findings %o end with %i', (findings, code) => {
  expect(exitCode(findings)).toBe(code);
});
