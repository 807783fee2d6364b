/** A day that only the monthly object has, in a month that the lake holds day by day. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCsv } from '../../scripts/synthetic-archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { parquetDigests } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';
import { publish } from '../helpers/published.js';

const scene = useScene({});
const { scratch, folder } = scene;
const DAYS = Array.from({ length: 31 }, (_, index) => `2024-01-${String(index + 1).padStart(2, '0')}`);
const HOLE = '2024-01-10';

function keyOf(symbol: string, period: string): string {
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  return `data/futures/um/${cadence}/klines/${symbol}/1h/${symbol}-1h-${period}.zip`;
}

function csvOf(symbol: string, period: string): string {
  return makeCsv({ market: 'um', dataset: 'klines', interval: '1h', symbol, period }).csv;
}

/** All rows of January but those of which the hour of the month is among `lacking`. */
function publishMonth(symbol: string, lacking: readonly number[] = []): void {
  const texts = DAYS.map((day) => csvOf(symbol, day).trimEnd().split('\n'));
  const rows = texts.flatMap((lines) => lines.slice(1)).filter((_, hour) => !lacking.includes(hour));
  publish(folder, keyOf(symbol, '2024-01'), `${[texts[0]?.[0] ?? '', ...rows].join('\n')}\n`);
}

/** A lake that holds the days of January that the archive has, all but one or all, and a day behind them. */
async function heldDays(symbol: string, ...args: string[]): Promise<void> {
  for (const day of [...DAYS.filter((each) => each !== HOLE), '2024-02-01'])
    publish(folder, keyOf(symbol, day), csvOf(symbol, day));
  const { events } = await vision(symbol, symbol, '2024-02-01', ...args);
  expect(events.at(-1)).toMatchObject({ outcomes: { failed: 0 } });
}

function vision(out: string, symbol: string, to: string, ...args: string[]): Promise<CliResult> {
  const range = ['--interval', '1h', '--symbols', symbol, '--from', '2024-01-01', '--to', to];
  return run('vision', out, ...range, ...args);
}

function run(verb: 'vision' | 'repair' | 'audit', out: string, ...args: string[]): Promise<CliResult> {
  const fast = verb === 'audit' ? FAST.slice(0, -2) : FAST;
  const rest = verb === 'repair' ? ['--fapi-url', scene.archive.url] : [];
  const places = ['--archive-url', scene.archive.url, '--out', join(scratch, out)];
  return cryptodl([verb, ...args, ...places, ...rest, ...fast, '--json']);
}

async function januaryOf(out: string): Promise<string[]> {
  return (await parquetDigests(join(scratch, out))).filter((line) => line.includes('2024-01.'));
}

function zipRequests(): string[] {
  return scene.archive.objectRequests().filter((path) => path.endsWith('.zip'));
}

function restRequests(): string[] {
  return scene.archive.requests.filter((path) => path.startsWith('/fapi/'));
}

describe('repair of a month that is held day by day', () => {
  it('takes the monthly object where a day is a hole, like a new lake', async () => {
    await heldDays('HOLEUSDT');
    publishMonth('HOLEUSDT');
    const covered = await cryptodl(['coverage', '--out', join(scratch, 'HOLEUSDT')]);
    expect(covered.stderr).toContain('next  cryptodl repair');
    scene.archive.requests.length = 0;
    const { code, events } = await run('repair', 'HOLEUSDT');
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 1, absent: 0, failed: 0 } });
    expect(code).toBe(0);
    expect(events[0]).toMatchObject({ event: 'plan', wider: 0 });
    expect([zipRequests(), restRequests()]).toEqual([[`/${keyOf('HOLEUSDT', '2024-01')}`], []]);
    await vision('fresh', 'HOLEUSDT', '2024-01-31');
    expect(await januaryOf('HOLEUSDT')).toEqual(await januaryOf('fresh'));
    expect((await run('repair', 'HOLEUSDT')).events.at(-1)).toMatchObject({ outcomes: { ok: 0, absent: 0 } });
  });

  it('takes the monthly object where it has hours that a day lacks', async () => {
    const [head = '', ...rows] = csvOf('HOURUSDT', HOLE).trimEnd().split('\n');
    publish(folder, keyOf('HOURUSDT', HOLE), `${[head, ...rows.slice(0, 16)].join('\n')}\n`);
    await heldDays('HOURUSDT');
    publishMonth('HOURUSDT');
    const { code, events } = await run('repair', 'HOURUSDT');
    expect([code, events.at(-1)]).toMatchObject([0, { outcomes: { ok: 1, failed: 0 } }]);
    expect(restRequests()).toEqual([]);
    await vision('fresh-hours', 'HOURUSDT', '2024-01-31');
    expect(await januaryOf('HOURUSDT')).toEqual(await januaryOf('fresh-hours'));
  });

  it('leaves the days where the monthly object lacks a row of them, says so, and asks REST the next time', async () => {
    await heldDays('LESSUSDT');
    publishMonth('LESSUSDT', [100]);
    const before = await januaryOf('LESSUSDT');
    const { code, events, stderr } = await run('repair', 'LESSUSDT');
    expect(events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 1 } });
    expect(code).toBe(4);
    expect(stderr).toContain('it lacks 1 row of held days: the held days were not changed');
    expect([await januaryOf('LESSUSDT'), restRequests()]).toEqual([before, []]);
    scene.archive.requests.length = 0;
    await run('repair', 'LESSUSDT');
    expect(zipRequests()).toEqual([]);
    expect(restRequests()).not.toEqual([]);
  });

  it('leaves the days where the monthly object has no other rows', async () => {
    await heldDays('SAMEUSDT');
    publishMonth(
      'SAMEUSDT',
      Array.from({ length: 24 }, (_, hour) => 9 * 24 + hour),
    );
    const before = await januaryOf('SAMEUSDT');
    const { stderr } = await run('repair', 'SAMEUSDT');
    expect(stderr).toContain('it has no additional rows: the held days were not changed');
    expect(await januaryOf('SAMEUSDT')).toEqual(before);
  });

  it('takes the day where the archive has it by now', async () => {
    await heldDays('LATEUSDT');
    publishMonth('LATEUSDT');
    publish(folder, keyOf('LATEUSDT', HOLE), csvOf('LATEUSDT', HOLE));
    scene.archive.requests.length = 0;
    await run('repair', 'LATEUSDT');
    expect(zipRequests()).toEqual([`/${keyOf('LATEUSDT', HOLE)}`]);
  });

  it.each([
    ['FILEUSDT', '--partition', 'day'],
    ['ZIPUSDT', '--format', 'zip'],
  ])('asks for no monthly object where a file has one day: %s with %s %s', async (symbol, ...flags) => {
    await heldDays(symbol, ...flags);
    publishMonth(symbol);
    scene.archive.requests.length = 0;
    await run('repair', symbol);
    expect(scene.archive.requests.filter((path) => path.includes('monthly'))).toEqual([]);
  });
});

describe('audit', () => {
  it('tells rows of a day that is a hole in the daily cadence', async () => {
    await heldDays('AUDITUSDT');
    publishMonth('AUDITUSDT');
    const { code, events } = await run('audit', 'AUDITUSDT', '--from', '2024-01-01', '--to', '2024-01-31');
    expect(events.filter(({ event }) => event === 'finding')).toEqual([
      expect.objectContaining({ kind: 'rows-extra', rows: 24, days: [HOLE] }),
    ]);
    expect(code).toBe(4);
  });
});
