/** The manifests of two writers as one. */
import { expect, it } from 'vitest';
import { joinManifests } from '../../src/mirror/manifest-text.js';

const line = (key: string, at: string): string => `{"key":"${key}","at":"${at}"}\n`;
const joined = (local: string, remote: string, base: string): string | undefined =>
  joinManifests(Buffer.from(local), Buffer.from(remote), [base.length])?.toString();

const BASE = line('a', '1');

it('has the lines of both writers, those of the bucket first', () => {
  expect(joined(BASE + line('b', '2'), BASE + line('c', '3'), BASE)).toBe(
    BASE + line('c', '3') + line('b', '2'),
  );
});

it('has an object that both writers have committed only once', () => {
  const local = BASE + line('b', '2') + line('c', '2');
  expect(joined(local, BASE + line('c', '3'), BASE)).toBe(BASE + line('c', '3') + line('b', '2'));
  expect(joined(BASE + line('c', '2'), BASE + line('c', '3'), BASE)).toBe(BASE + line('c', '3'));
});

it('does not join a manifest that was rewritten', () => {
  expect(joined(BASE + line('b', '2'), line('z', '1'), BASE)).toBeUndefined();
});
