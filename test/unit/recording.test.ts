/** The picture of the README. test/long/recording.test.ts compares it with a new run. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { recordingSvg } from '../../scripts/recording-svg.js';
import { readRecording } from '../helpers/recording.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const svg = read('docs/recording.svg');

describe('docs/recording.svg', () => {
  it('is well-formed, and its last screen has the closing block of a run', () => {
    const { lines } = readRecording(svg);
    expect(lines[0]).toMatch(/^\$ {2}cryptodl vision /);
    expect(lines.join('\n')).toMatch(/^\d+ ok in /m);
    expect(lines.join('\n')).toMatch(/^\d+ skipped in /m);
  });

  it('shows the bar of the progress while it is there', () => {
    const { lines, past } = readRecording(svg);
    expect(past.join('\n')).toMatch(/█░/);
    expect(lines.join('\n')).not.toMatch(/█░/);
  });

  it('refers to nothing outside of itself and is small', () => {
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', '')).not.toMatch(
      /https?:|href|url\(|@import|@font-face|<script|<image/,
    );
    expect(svg.length).toBeLessThan(200_000);
  });

  it('stands in the README', () => {
    expect(read('README.md')).toMatch(/!\[[^\]]+\]\(docs\/recording\.svg\)/);
  });
});

describe('a recording', () => {
  const typed = (...texts: readonly string[]) => [
    texts.map((text, index) => ({ x: 10 * index, text, color: undefined, isBold: false })),
  ];

  it('keeps the characters of markup, and the texts that a later one replaces', () => {
    const frames = [
      { atMs: 0, rows: typed('first') },
      { atMs: 10, rows: typed('a < b && c > d', 'e') },
    ];
    const { lines, past } = readRecording(recordingSvg(frames, { cols: 80, rows: 1 }));
    expect([lines, past]).toEqual([['a < b && c > d  e'], ['first']]);
  });
});
