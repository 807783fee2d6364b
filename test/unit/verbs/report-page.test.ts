/** The parts of `cryptodl report`: data in a page, states of days, and figures over runs. */
import { readFileSync, readdirSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY_SECONDS } from '../../../src/model/units.js';
import { type Gap } from '../../../src/lake/catalogue/gap.js';
import type { SeriesStates } from '../../../src/lake/catalogue/day-states.js';
import { periodsOf } from '../../../src/lake/catalogue/period-amounts.js';
import { DayStates, dayRuns } from '../../../src/verbs/report/coverage-elements.js';
import { runData } from '../../../src/verbs/report/report.js';
import { embedded, hashSource, pageShell } from '../../../src/terminal/page-shell.js';
import { runRecord } from '../../helpers/report-lake.js';

describe('data in a page', () => {
  const markup = fc.constantFrom(
    '</script>',
    '<!--',
    '<img src=x onerror=alert(1)>',
    '"',
    "'",
    '&lt;',
    '\u2028',
    '\u2029',
    ']]>',
    '\ud800',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(fc.oneof(markup, fc.string())).map((parts) => parts.join('')),
  );

  it('survives as every text', () => {
    fc.assert(
      fc.property(fc.dictionary(text, text), (data) => {
        // Passwords of addresses are masked on purpose.
        fc.pre(!JSON.stringify(data).includes('://'));
        const json = embedded(data);
        expect(JSON.parse(json)).toEqual(data);
        expect(json).not.toMatch(/[<>&\u2028\u2029]/);
      }),
    );
  });

  it('has no password', () => {
    expect(embedded({ proxy: 'http://me:secret@host' })).not.toContain('secret');
  });
});

describe('the page', () => {
  const { before, after } = pageShell('report');
  const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(before) ?? [];

  it('allows its own style and script and nothing else', () => {
    const [, style = ''] = /<style>([^]*)<\/style>/.exec(before) ?? [];
    const [, script = ''] = /<script>([^]*)<\/script>/.exec(after) ?? [];
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${hashSource(script)}`,
      `style-src ${hashSource(style)}`,
      "base-uri 'none'",
      "form-action 'none'",
    ]);
  });

  it('names no address but that of the home of its chart library', () => {
    const addresses = `${before}${after}`.match(/(?:https?:)?\/\/[\w.-]+\.\w+[^\s'"`)]*/g) ?? [];
    expect(addresses).toEqual(['https://github.com/leeoniya/uPlot']);
    expect(`${before}${after}`).not.toMatch(/\b(?:src|href)="(?!#)|@import|url\(/);
  });

  it('never makes markup from text', () => {
    const folder = new URL('../../../assets/', import.meta.url);
    const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.js'),
    );
    expect(scripts.length).toBeGreaterThan(4);
    for (const name of scripts)
      expect(readFileSync(new URL(name, folder), 'utf8')).not.toMatch(
        /innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function/,
      );
  });

  it('has a form for each level of the heat-map, not only a colour', () => {
    const source = readFileSync(new URL('../../../assets/report/heat-map.js', import.meta.url), 'utf8');
    const levels = runInNewContext(`${source}\nLEVELS`) as { height: number; isAtTop?: boolean }[];
    const forms = levels.map(({ height, isAtTop = false }) => `${height} ${isAtTop}`);
    expect(forms.length).toBeGreaterThan(5);
    expect(new Set(forms).size).toBe(forms.length);
  });
});

describe('the states of days', () => {
  const heatMap = readFileSync(new URL('../../../assets/report/heat-map.js', import.meta.url), 'utf8');
  const runsOf = runInNewContext(`${heatMap}\nrunsOf`) as (row: { d: number; r: string }) => {
    readonly ends: Int32Array;
    readonly states: Int32Array;
  };

  /** The state of each day, as the page reads them. */
  function daysOf(text: string): number[] {
    const { ends, states } = runsOf({ d: 0, r: text });
    return [...states].flatMap((state, at) =>
      Array.from({ length: (ends[at] ?? 0) - (ends[at - 1] ?? 0) }, () => state),
    );
  }

  const of = (from: number, to: number, gaps: readonly Gap[]): SeriesStates =>
    ({ from, to, rowSeconds: 60, gaps }) as SeriesStates;
  const gap = (from: number, to: number, reason: Gap['reason'], isMissing = true, rowSeconds = 60): Gap => ({
    fromSeconds: from * DAY_SECONDS,
    toSeconds: to * DAY_SECONDS,
    state: 'absent',
    reason,
    amount: ((to - from) * DAY_SECONDS) / rowSeconds,
    isMissing,
  });

  it('are runs of equal days with the reason of the largest gap', () => {
    const states = new DayStates();
    const gaps = [
      gap(10, 12, 'not-listed-yet', false),
      gap(13, 13.5, 'hole'),
      gap(13.75, 14.25, 'unexplained'),
      gap(16, 16.5, 'halt', false),
    ];
    expect(dayRuns(of(10, 18, gaps), states)).toBe('A2BCDBEB');
    expect(states.list).toEqual([
      [null, 'not-listed-yet'],
      [100, null],
      [25, 'hole'],
      [75, 'unexplained'],
      [100, 'halt'],
    ]);
  });

  it('that lack data have the reason of the missing data, also if another gap is longer', () => {
    const states = new DayStates();
    const gaps = [gap(10, 10.5, 'halt', false), gap(10.75, 11, 'hole')];
    expect(dayRuns(of(10, 11, gaps), states)).toBe('A');
    expect(states.list).toEqual([[50, 'hole']]);
  });

  it('are read by the page as they are written, also if there are thousands', () => {
    const expected = Array.from({ length: 20_000 }, (_, at) => Math.floor(at / (1 + (at % 3))));
    const states = new DayStates();
    let day = 0;
    states.numberOf = () => expected[day++] ?? -1;
    const runs = dayRuns(of(0, expected.length, []), states);
    expect(runs.slice(0, 8)).toBe('A3DCBGDC');
    expect(daysOf(runs)).toEqual(expected);
  });

  it('have the percentages of coverage by day, rounded down, and cover each day once', () => {
    const span = fc.tuple(fc.nat(200), fc.integer({ min: 1, max: 40 }));
    fc.assert(
      fc.property(
        fc.array(span, { maxLength: 20 }),
        fc.constantFrom<Gap['reason'][]>(['hole'], ['halt']),
        (spans, [reason = 'hole']) => {
          let end = 0;
          const gaps = spans.map(([before, length]) => {
            const from = end + before / 8;
            end = from + length / 8;
            return gap(from, end, reason, reason === 'hole');
          });
          const series = of(0, Math.ceil(end) + 1, gaps);
          const states = new DayStates();
          const runs = dayRuns(series, states);
          const percents = daysOf(runs).map((state) => states.list[state]?.[0]);
          expect(percents).toEqual(
            periodsOf(series, 'day').map(({ expected, missing }) =>
              expected === 0 ? null : Math.floor((100 * (expected - missing)) / expected),
            ),
          );
        },
      ),
    );
  });
});

describe('the figures over runs', () => {
  const start = Date.parse('2026-06-01T08:00:00Z');
  const runs = Array.from({ length: 120 }, (_, at) => runRecord(start + at * 86_400_000));

  it('are of the last hundred runs, oldest first', () => {
    const { history, run } = runData(runs[3], runs);
    expect([history.length, history[0]?.id, history.at(-1)?.id, run?.id]).toEqual([
      100,
      runs[20]?.id,
      runs[119]?.id,
      runs[3]?.id,
    ]);
  });

  it('have the last, the median and the longest delay of publication by dataset', () => {
    const delayed = [5, 1, null, 3].map((hours, at) => {
      const record = structuredClone(runs[at] ?? runRecord(start));
      for (const each of record.summary.datasets)
        each.publicationDelayMs = hours === null ? null : hours * 3_600_000;
      return record;
    });
    expect(runData(undefined, delayed)).toMatchObject({
      run: null,
      publication: [
        {
          market: 'um',
          dataset: 'klines',
          newest: '2026-06-03',
          lastMs: 10_800_000,
          medianMs: 10_800_000,
          mostMs: 18_000_000,
          runs: 4,
        },
      ],
    });
  });
});
