/** A monthly object that is broken or short, beside daily objects that are not. */
import { existsSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { makeCsv } from '../../scripts/synthetic-archive.js';
import { FAST, argv, cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { parquetDigests } from '../helpers/lake.js';
import { memberOf, publish, publishZip } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({});
const { scratch, folder } = scene;
const DAYS = Array.from({ length: 31 }, (_, index) => `2024-01-${String(index + 1).padStart(2, '0')}`);

function keyOf(symbol: string, period: string): string {
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  return `data/futures/um/${cadence}/klines/${symbol}/1h/${symbol}-1h-${period}.zip`;
}

function csvOf(symbol: string, period: string): string {
  return makeCsv({ market: 'um', dataset: 'klines', interval: '1h', symbol, period }).csv;
}

function publishDays(symbol: string, days: readonly string[] = DAYS): void {
  for (const day of days) {
    publish(folder, keyOf(symbol, day), csvOf(symbol, day));
    // Another series begins and ends with the bars of an hour.
    publish(folder, keyOf(symbol, day).replaceAll('1h', '1d'), csvOf(symbol, day));
  }
}

/** A month of the rows of these days. */
function publishMonth(symbol: string, days: readonly string[] = DAYS, month = '2024-01'): void {
  const texts = days.map((day) => csvOf(symbol, day).trimEnd().split('\n'));
  const rows = texts.flatMap((lines) => lines.slice(1));
  publish(folder, keyOf(symbol, month), `${[texts[0]?.[0] ?? '', ...rows].join('\n')}\n`);
}

/** Its sidecar is right, its content is not what its CRC says. */
function publishBroken(symbol: string, period: string): void {
  const key = keyOf(symbol, period);
  const zip = makeZip([{ name: memberOf(key), data: csvOf(symbol, DAYS[0] ?? '') }]);
  zip[60] = (zip[60] ?? 0) ^ 0xff;
  publishZip(folder, key, zip);
}

beforeAll(() => {
  // The market goes on.
  publishDays('BTCUSDT', [...DAYS, new Date(Date.now() - 5 * 86_400_000).toISOString().slice(0, 10)]);
  publishBroken('BROKENUSDT', '2024-01');
  publishDays('BROKENUSDT');
  publishBroken('TWICEUSDT', '2024-01');
  publishDays('TWICEUSDT');
  publishBroken('TWICEUSDT', '2024-01-09');
  publishBroken('ALONEUSDT', '2024-01');
  publishMonth(
    'SHORTUSDT',
    DAYS.filter((day) => day !== DAYS[10] && day !== DAYS[11]),
  );
  publishDays('SHORTUSDT');
  // The days lack what the month lacks, or more.
  publishMonth(
    'HOLEUSDT',
    DAYS.filter((day) => day !== DAYS[10]),
  );
  publishDays(
    'HOLEUSDT',
    DAYS.filter((day) => day !== DAYS[10]),
  );
  publishMonth(
    'LESSUSDT',
    DAYS.filter((day) => day !== DAYS[10]),
  );
  publishDays(
    'LESSUSDT',
    DAYS.filter((day) => day !== DAYS[20]),
  );
  publishMonth('YOUNGUSDT', DAYS.slice(9));
  publishDays('YOUNGUSDT', DAYS.slice(9));
});

function run(verb: 'vision' | 'retry' | 'repair', out: string, ...args: string[]): Promise<CliResult> {
  return cryptodl([verb, ...args, '--archive-url', scene.archive.url, '--out', join(scratch, out), ...FAST]);
}

function vision(out: string, symbol: string, ...args: string[]): Promise<CliResult> {
  const month = ['--from', '2024-01-01', '--to', '2024-01-31'];
  return run('vision', out, '--interval', '1h', '--symbols', symbol, ...month, '--json', ...args);
}

function dailyRequests(): string[] {
  return scene.archive.objectRequests().filter((path) => /\/daily\/.*\.zip$/.test(path));
}

async function isLikeItsDays(out: string, symbol: string): Promise<void> {
  await vision('days', symbol, '--cadence', 'daily');
  const days = (await parquetDigests(join(scratch, 'days'))).filter((line) => line.includes(symbol));
  expect((await parquetDigests(join(scratch, out))).filter((line) => line.includes('2024-01.'))).toEqual(
    days,
  );
}

describe('a monthly object that is broken', () => {
  it('gives way to its days in the same run, which is told and is no failure', async () => {
    const { code, events, stderr } = await vision('broken', 'BROKENUSDT');
    expect(events.at(-1)).toMatchObject({
      outcomes: { ok: 31, skipped: 1, failed: 0, absent: 0 },
      undone: 0,
    });
    expect(code).toBe(0);
    expect(stderr).toContain('um klines 1h BROKENUSDT 2024-01 is taken from its daily objects: ');
    expect(stderr).toContain(keyOf('BROKENUSDT', '2024-01'));
    expect(dailyRequests()).toHaveLength(31);
    expect(existsSync(join(scratch, 'broken/_failures'))).toBe(false);
    await isLikeItsDays('broken', 'BROKENUSDT');
  });

  it('is not asked for again', async () => {
    const { events } = await vision('broken', 'BROKENUSDT');
    expect(events.at(-1)).toMatchObject({ outcomes: { skipped: 31, failed: 0 }, exitCode: 0 });
    expect(scene.archive.objectRequests()).toEqual([]);
  });

  it('stays a failure where one of its days is broken as well', async () => {
    const { code, events } = await vision('twice', 'TWICEUSDT');
    expect(code).toBe(4);
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 30, failed: 2 } });
    const failed = events.filter(({ outcome }) => outcome === 'failed').map(({ period }) => period);
    expect(new Set(failed)).toEqual(new Set(['2024-01', '2024-01-09']));
  });

  it('stays a failure where there are no days, and where --cadence monthly was asked for', async () => {
    const alone = await vision('alone', 'ALONEUSDT');
    expect(alone.events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 1, absent: 0 }, exitCode: 4 });
    const monthly = await vision('monthly', 'BROKENUSDT', '--cadence', 'monthly');
    expect(monthly.events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 1 }, exitCode: 4 });
  });

  /** Other ways in which a monthly object is broken. */
  const BROKEN: readonly (readonly [string, string, (key: string, csv: string) => void])[] = [
    [
      'CELLUSDT',
      'a wrong cell',
      (key, csv) => {
        publish(folder, key, csv.replace(/,[^,]*\n$/, ',x\n'));
      },
    ],
    [
      'HEADERUSDT',
      'another header',
      (key, csv) => {
        publish(folder, key, csv.replace('open_time', 'time'));
      },
    ],
    [
      'YEARUSDT',
      'rows of another year',
      (key) => {
        publish(folder, key, csvOf('YEARUSDT', '2023-01-05'));
      },
    ],
    [
      'EMPTYUSDT',
      'no row',
      (key, csv) => {
        publish(folder, key, csv.slice(0, csv.indexOf('\n') + 1));
      },
    ],
    [
      'STALEUSDT',
      'a stale sidecar',
      (key, csv) => {
        publish(folder, key, csv, (_digest, name) => `${'0'.repeat(64)}  ${name}\n`);
      },
    ],
  ];

  it.each(BROKEN)('gives way to its days as well: %s with %s', async (symbol, _what, publishWrong) => {
    publishWrong(keyOf(symbol, '2024-01'), csvOf(symbol, DAYS[0] ?? ''));
    publishDays(symbol, DAYS.slice(27));
    const { events } = await vision('wrong', symbol);
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 4, skipped: 1, failed: 0 }, exitCode: 0 });
  });

  it.each([
    ['was listed in the middle of it', 'BORNUSDT', DAYS.slice(27)],
    ['was delisted in the middle of it', 'GONEUSDT', DAYS.slice(0, 4)],
  ])('gives way to the days of a symbol that %s', async (_, symbol, days) => {
    publishBroken(symbol, '2024-01');
    publishDays(symbol, days);
    const { events } = await vision('part', symbol);
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 4, skipped: 1, failed: 0 }, exitCode: 0 });
  });

  it('stays a failure where one of its days is not in the archive', async () => {
    publishBroken('LACKUSDT', '2024-01');
    publishDays(
      'LACKUSDT',
      DAYS.filter((day) => day !== DAYS[10]),
    );
    const { events } = await vision('lack', 'LACKUSDT');
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 30, failed: 1 }, exitCode: 4 });
  });

  it('of a held month does not take the place of its rows, unless their file is damaged', async () => {
    publishMonth('HELDUSDT');
    publishDays('HELDUSDT');
    expect((await vision('held', 'HELDUSDT')).code).toBe(0);
    const before = await parquetDigests(join(scratch, 'held'));
    publishBroken('HELDUSDT', '2024-01');
    scene.archive.requests.length = 0;
    const kept = await vision('held', 'HELDUSDT');
    expect(kept.events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 1 }, exitCode: 4 });
    expect([dailyRequests(), await parquetDigests(join(scratch, 'held'))]).toEqual([[], before]);
    truncateSync(join(scratch, 'held/binance/um/klines/interval=1h/symbol=HELDUSDT/2024-01.parquet'), 500);
    const damaged = await vision('held', 'HELDUSDT');
    expect(damaged.events.at(-1)).toMatchObject({ outcomes: { ok: 31, failed: 0 }, exitCode: 0 });
    await isLikeItsDays('held', 'HELDUSDT');
  });

  it('stays a failure when a signal ends the run within its days', async () => {
    publishBroken('ENDUSDT', '2024-01');
    publishDays('ENDUSDT');
    const month = ['--interval', '1h', '--symbols', 'ENDUSDT', '--from', '2024-01-01', '--to', '2024-01-31'];
    const args = argv`vision ${month} --archive-url ${scene.archive.url} --out ${join(scratch, 'end')} --json`;
    const ended = await cryptodl([...args, ...FAST], {
      onSpawn: (child) => {
        scene.archive.fault = (path) => {
          if (!path.includes('/daily/') || !path.endsWith('-2024-01-20.zip')) return false;
          child.kill('SIGINT');
          return true;
        };
      },
    });
    scene.archive.fault = undefined;
    expect(ended.events.at(-1)).toMatchObject({ outcomes: { failed: 1 }, exitCode: 130 });
    expect(ended.stderr).not.toContain('is taken from its daily objects');
    const next = await vision('end', 'ENDUSDT');
    expect(next.events.at(-1)).toMatchObject({ outcomes: { failed: 0 }, exitCode: 0 });
    await isLikeItsDays('end', 'ENDUSDT');
  });

  it('is made good by retry once its days are there', async () => {
    publishBroken('LATERUSDT', '2024-01');
    const failed = await vision('later', 'LATERUSDT');
    publishDays('LATERUSDT');
    const report = String(failed.events.at(-1)?.['failures']);
    const retried = await run('retry', 'later', report, '--json');
    expect(retried.events.at(-1)).toMatchObject({ outcomes: { ok: 31, skipped: 1, failed: 0 }, exitCode: 0 });
  });
});

describe('a monthly object without some of its days', () => {
  it('gives way to its days in the same run', async () => {
    const { code, events, stderr } = await vision('short', 'SHORTUSDT', '--strict');
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 31, skipped: 1, partial: 0, failed: 0 } });
    expect(code).toBe(0);
    expect(stderr).toContain(
      'um klines 1h SHORTUSDT 2024-01 is taken from its daily objects: its monthly object has no rows of 2 days',
    );
    await isLikeItsDays('short', 'SHORTUSDT');
  });

  it.each(['SIGKILL', 'SIGINT'] as const)(
    'gives way to its days in the run after one that %s ended, with symbols and without',
    async (signal) => {
      const symbol = `${signal}USDT`;
      publishMonth(
        symbol,
        DAYS.filter((day) => day !== DAYS[10]),
      );
      publishDays(symbol);
      for (const next of [() => vision('cut', symbol), () => run('vision', 'cut', '--json')]) {
        rmSync(join(scratch, 'cut'), { recursive: true, force: true });
        const month = ['--interval', '1h', '--symbols', symbol, '--from', '2024-01-01', '--to', '2024-01-31'];
        const args = ['vision', ...month, '--archive-url', scene.archive.url, '--out', join(scratch, 'cut')];
        await cryptodl([...args, ...FAST], {
          onSpawn: (child) => {
            scene.archive.fault = (path) => {
              if (!path.includes('/daily/') || !path.endsWith('.zip')) return false;
              child.kill(signal);
              return true;
            };
          },
        });
        scene.archive.fault = undefined;
        expect((await next()).code).toBe(0);
        await isLikeItsDays('cut', symbol);
      }
    },
  );

  it('is a failure in the report where --max-duration leaves no time for its days', async () => {
    publishMonth(
      'TIMEUSDT',
      DAYS.filter((day) => day !== DAYS[10]),
    );
    publishDays('TIMEUSDT');
    scene.archive.fault = (path, request, response) => {
      if (path.includes('/daily/') || !path.endsWith('.zip')) return false;
      setTimeout(() => {
        scene.archive.serve(request, response);
      }, 3000);
      return true;
    };
    const ended = await vision('time', 'TIMEUSDT', '--max-duration', '2s');
    scene.archive.fault = undefined;
    expect(ended.events.at(-1)).toMatchObject({ outcomes: { failed: 1 }, exitCode: 3 });
    const report = String(ended.events.at(-1)?.['failures']);
    const retried = await run('retry', 'time', report, '--json');
    expect(retried.events.at(-1)).toMatchObject({ outcomes: { failed: 0 }, exitCode: 0 });
    await isLikeItsDays('time', 'TIMEUSDT');
  });

  it('is replaced by days that have a part of its missing rows', async () => {
    publishMonth('PARTUSDT', [...DAYS.slice(0, 10), ...DAYS.slice(12)]);
    publishDays('PARTUSDT', [...DAYS.slice(0, 11), ...DAYS.slice(12)]);
    const { events } = await vision('part-of-it', 'PARTUSDT');
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 30, skipped: 1, failed: 0 }, exitCode: 0 });
    await isLikeItsDays('part-of-it', 'PARTUSDT');
  });

  it('stays where its days lack the same day, or another one', async () => {
    for (const symbol of ['HOLEUSDT', 'LESSUSDT']) {
      const { events, stderr } = await vision('hole', symbol);
      expect(events.at(-1)).toMatchObject({ outcomes: { ok: 0, partial: 1, absent: 0 }, exitCode: 0 });
      expect(stderr).toContain('720 of 744 rows; cryptodl audit compares it with its days');
      expect(dailyRequests()).toEqual([]);
      const again = await vision('hole', symbol);
      expect(again.events.at(-1)).toMatchObject({ outcomes: { partial: 0, skipped: 1 }, exitCode: 0 });
    }
  });

  it('of a symbol that was listed in the middle of it stays, and none of its days is fetched', async () => {
    const { events } = await vision('young', 'YOUNGUSDT');
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 0, partial: 1, absent: 0 } });
    await run('repair', 'young', '--fapi-url', scene.archive.url);
    expect(dailyRequests()).toEqual([]);
  });

  it.each([
    ['its first days', 'STARTUSDT', DAYS.slice(2)],
    ['its last days', 'STOPUSDT', DAYS.slice(0, -3)],
  ])(
    'gives way to its days where it lacks %s and nothing around it is asked for',
    async (_, symbol, days) => {
      publishMonth(symbol, days);
      publishDays(symbol);
      const { events, stderr } = await vision(symbol, symbol);
      expect(events.at(-1)).toMatchObject({ outcomes: { ok: 31, skipped: 1, partial: 0 }, exitCode: 0 });
      expect(stderr).toContain(`${symbol} 2024-01 is taken from its daily objects`);
      await isLikeItsDays(symbol, symbol);
    },
  );

  it('is repaired from its days where it is held without its last days and nothing behind it is held', async () => {
    publishMonth('TAILUSDT', DAYS.slice(0, -3));
    await vision('tail', 'TAILUSDT');
    publishDays('TAILUSDT');
    const covered = await cryptodl(['coverage', '--out', join(scratch, 'tail')]);
    expect(covered.stderr).toContain(`next  cryptodl repair --out ${join(scratch, 'tail')}`);
    const repaired = await run('repair', 'tail', '--json');
    expect(repaired.events.at(-1)).toMatchObject({ outcomes: { ok: 31, failed: 0 }, exitCode: 0 });
    await isLikeItsDays('tail', 'TAILUSDT');
  });

  it('is left alone by repair where it is held with --cadence monthly', async () => {
    const lacking = DAYS.filter((day) => day !== DAYS[10]);
    publishMonth('ONLYUSDT', lacking);
    await vision('only', 'ONLYUSDT', '--cadence', 'monthly');
    publishDays('ONLYUSDT');
    await run('repair', 'only', '--json');
    expect(dailyRequests()).toEqual([]);
  });

  it('is repaired from days that have a part of its missing rows', async () => {
    publishMonth(
      'SOMEUSDT',
      DAYS.filter((day) => day !== DAYS[10] && day !== DAYS[11]),
    );
    await vision('some', 'SOMEUSDT');
    publishDays(
      'SOMEUSDT',
      DAYS.filter((day) => day !== DAYS[11]),
    );
    const repaired = await run('repair', 'some', '--json');
    expect(repaired.events.at(-1)).toMatchObject({ outcomes: { ok: 30, failed: 0 }, exitCode: 0 });
    await isLikeItsDays('some', 'SOMEUSDT');
  });
});
