/** The line that `coverage` prints after `next`. */
import { VERBS } from '../../src/main.js';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DAY_SECONDS } from '../../src/lake/catalogue/gap.js';
import type { SeriesStates } from '../../src/lake/catalogue/day-states.js';
import type { Gap } from '../../src/lake/catalogue/gap.js';
import { flagLayer } from '../../src/plan/options/option-layers.js';
import { parseCommandLine } from '../../src/cli/program.js';
import { NextStep } from '../../src/verbs/coverage/next-step.js';
import { dayPeriod } from '../../src/model/calendar.js';
import type { Format } from '../../src/model/task.js';
import { resolveOptions } from '../../src/plan/options/resolve.js';
import type { RawValues } from '../../src/plan/options/resolve.js';
import type { LastFailures } from '../../src/run/select-failures.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { day } from '../helpers/conversion.js';
import { scratchFolder } from '../helpers/folders.js';

const VENUE = loadBinance();
const OUT = join(scratchFolder(), 'lake');
mkdirSync(join(OUT, 'binance'), { recursive: true });
const NOW = '2024-01-21T12:00:00Z';
/** The days that each series holds, with the days between them. */
const OWN = { from: day('2024-01-05'), to: day('2024-01-11') };

/** A series that lacks the days `[from, to)`, by number in January. */
interface Lacks {
  readonly symbol?: string;
  readonly dataset?: string;
  readonly interval?: string;
  readonly format?: Format;
  readonly days: readonly [from: number, to: number];
  readonly reason?: Gap['reason'];
  readonly isMissing?: boolean;
}

function covered(lacks: Lacks): SeriesStates {
  const { symbol = 'BTCUSDT', dataset = 'klines', interval = '1m', format = 'parquet' } = lacks;
  const { days, reason = 'not-fetched', isMissing = true } = lacks;
  const [from, to] = days.map((number) => (day('2024-01-01') + number - 1) * DAY_SECONDS);
  const gap: Gap = { from: from ?? 0, to: to ?? 0, state: 'absent', reason, amount: 1, isMissing };
  const ofInterval = interval === '' ? {} : { interval };
  const series = { market: 'um', dataset, symbol, ...ofInterval };
  return {
    series,
    format,
    own: OWN,
    gaps: [gap],
    expected: 1,
    missing: 1,
    excused: 0,
  } as unknown as SeriesStates;
}

interface Given {
  readonly flags?: RawValues;
  readonly failures?: LastFailures;
}

/** The line after `cryptodl`, without the lake and the time; undefined if there is none. */
function nextOf(lacks: readonly Lacks[], given: Given = {}): string | undefined {
  const { flags = {}, failures } = given;
  const values = { out: [OUT], now: [NOW], ...flags };
  const layer = { origin: 'flag', values, nameOf: (name: string) => `--${name}` } as const;
  const resolved = resolveOptions(VERBS.coverage, [layer], VENUE);
  const next = new NextStep({ exchange: VENUE, nowMs: Date.parse(NOW), verbs: VERBS, resolved, failures });
  for (const one of lacks) next.add(covered(one));
  const line = next.line();
  for (const command of line?.split(' && ') ?? []) {
    expect(command).toContain(` --now ${NOW}`);
    if (command.startsWith('cryptodl retry')) continue;
    expect(command).toContain(` --out ${OUT} `);
    accepted(command.split(' ').slice(1));
  }
  return line?.replaceAll(` --out ${OUT}`, '').replaceAll(` --now ${NOW}`, '').replaceAll('cryptodl ', '');
}

/** Throws the error that the program would give. */
function accepted(words: readonly string[]): void {
  const invocation = parseCommandLine(words, VERBS, { write: () => true });
  if (invocation !== undefined) resolveOptions(invocation.verb, [flagLayer(invocation)], VENUE);
}

const INSIDE = [7, 8] as const;
const LATER = [11, 13] as const;
const LATER_DAYS = '--from 2024-01-11 --to 2024-01-12';
const NAMED = '--market um --dataset klines --interval 1m';

describe('the next step for days between the own days of a series', () => {
  it('is repair with the given selection, without the range', () => {
    const flags = {
      market: ['um'],
      dataset: ['klines,metrics', 'fundingRate'],
      interval: ['1m'],
      quote: ['USDT'],
      format: ['csv', 'parquet'],
      symbols: ['BTCUSDT'],
      days: ['20'],
    };
    expect(nextOf([{ days: INSIDE }], { flags })).toBe(
      'repair --market um --dataset klines,metrics,fundingRate --interval 1m --quote USDT --format parquet --symbols BTCUSDT',
    );
  });

  it('is nothing if no data is expected on these days', () => {
    const halt = { days: INSIDE, reason: 'halt', isMissing: false } as const;
    expect(nextOf([halt, { ...halt, days: LATER }])).toBeUndefined();
  });
});

describe('the next step for failures of the last report', () => {
  const failed = { days: INSIDE, reason: 'failed:connect-failed' } as const;
  const reported = (name = 'um klines 1m BTCUSDT'): Given => ({
    failures: {
      path: '/lake/_failures/a b.jsonl',
      bySeries: new Map([
        [name, [{ format: 'parquet', period: dayPeriod(day('2024-01-07')), code: 'connect-failed' }]],
      ]),
    },
  });

  it('is a retry of that report', () => {
    expect(nextOf([failed], reported())).toBe("retry '/lake/_failures/a b.jsonl'");
  });

  it('is repair for a failure of another series, without a report, and if other days are missing too', () => {
    expect(nextOf([failed], reported('um klines 1m ETHUSDT'))).toBe('repair');
    expect(nextOf([failed])).toBe('repair');
    expect(nextOf([failed, { days: [8, 9] }], reported())).toBe('repair');
  });
});

describe('the next step for days outside the own days', () => {
  it('is a download of these days with the given selection, which continues the series', () => {
    const flags = { quote: ['USDT'], format: ['csv'], days: ['10'] };
    const lacks = [
      { days: LATER, format: 'csv' },
      { symbol: 'A', days: [3, 5] },
    ] as const;
    expect(nextOf(lacks, { flags })).toBe(
      'vision --quote USDT --from 2024-01-03 --to 2024-01-12 --format csv',
    );
  });
});

describe('the next step for days outside the own days of given symbols', () => {
  const flags = { symbols: ['*USDT'] };

  it('names the symbols that lack days, and all of their days', () => {
    const lacks = [
      { days: LATER },
      { symbol: 'ETHUSDT', days: [3, 5] },
      { symbol: 'BTCUSDT', days: [12, 14] },
    ] as const;
    expect(nextOf(lacks, { flags })).toBe(
      `vision ${NAMED} --symbols BTCUSDT,ETHUSDT --from 2024-01-03 --to 2024-01-13`,
    );
  });

  it('is one command for each dataset', () => {
    const lacks = [
      { days: LATER },
      { symbol: 'ETHUSDT', days: LATER },
      { dataset: 'metrics', interval: '', days: LATER },
    ] as const;
    expect(nextOf(lacks, { flags })).toBe(
      [
        `vision ${NAMED} --symbols BTCUSDT,ETHUSDT ${LATER_DAYS}`,
        `vision --market um --dataset metrics --symbols BTCUSDT ${LATER_DAYS}`,
      ].join(' && '),
    );
  });
});
