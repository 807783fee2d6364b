/** The manifests of two writers as one. */
import { expect, it } from 'vitest';
import { joinManifests } from '../../src/mirror/manifest-text.js';

const line = (key: string, at: string): string => `{"key":"${key}","at":"${at}"}\n`;
const joined = (local: string, remote: string, base: string): string | undefined =>
  joinManifests(Buffer.from(local), Buffer.from(remote), base.length)?.toString();

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

it('has an object only once whose lines differ, and ends with the last line of a file', () => {
  const object = (key: string, fileSha256: string, more: string): string =>
    `{"kind":"object","key":"${key}","sha256":"${key}1","file":"2026-10.parquet","fileSha256":"${fileSha256}",${more}}\n`;
  const theirs = object('b', 'x', '"tool":"other"') + object('c', 'x', '"tool":"other"');
  // Of two commits, the first one has an earlier digest of the file.
  const ours = object('b', 'w', '"tool":"1"') + object('c', 'x', '"tool":"1"');
  expect(joined(BASE + ours, BASE + theirs, BASE)).toBe(BASE + theirs);
  const another = object('b', 'x', '"tool":"1"').replace('"b1"', '"b2"');
  expect(joined(BASE + another, BASE + theirs, BASE)).toBe(BASE + theirs + another);
});

it('does not join a manifest that was rewritten', () => {
  expect(joined(BASE + line('b', '2'), line('z', '1'), BASE)).toBeUndefined();
});
