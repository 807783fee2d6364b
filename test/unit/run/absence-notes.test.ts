/** What a run writes into the manifests about periods that it does not hold. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dayPeriod, monthOf, monthPeriod, parseDay } from '../../../src/model/calendar.js';
import { reasons } from '../../../src/lake/catalogue/absent-days.js';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import { seriesFolder } from '../../../src/lake/layout.js';
import { manifestPlace } from '../../../src/lake/manifest-place.js';
import { readManifest } from '../../../src/lake/manifest.js';
import { Manifests } from '../../../src/lake/manifests.js';
import { AbsenceNotes } from '../../../src/run/partitions/absence-notes.js';
import type { Series } from '../../../src/model/task.js';
import { scratchFolder } from '../../helpers/folders.js';
import { manifestLines } from '../../helpers/lake.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const ARCHIVE = loadBinance().archive;

const scratch = scratchFolder();
const SERIES: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };
const NOW = '2026-11-21T12:00:00.000Z';
const day = (text: string): number => parseDay(text) ?? Number.NaN;
const DAY = dayPeriod(day('2026-11-20'));

interface Scene {
  readonly folder: string;
  /** Writes what a run notes. */
  readonly run: (note: (notes: AbsenceNotes) => void) => Promise<void>;
}

function scene(): Scene {
  const root = mkdtempSync(join(scratch, 'lake-'));
  const folder = join(root, seriesFolder('binance', SERIES));
  mkdirSync(dirname(manifestPlace(folder).path), { recursive: true });
  writeFileSync(manifestPlace(folder).path, '');
  return {
    folder,
    run: async (note) => {
      const notes = new AbsenceNotes({
        paths: { root },
        manifests: new Manifests(ARCHIVE),
        exchange: { name: 'binance' },
        options: { verify: 'none' },
        nowMs: Date.parse(NOW),
      });
      note(notes);
      await notes.write();
    },
  };
}

const fail =
  (code: ErrorCode, period = DAY) =>
  (notes: AbsenceNotes): void => {
    const object = { key: 'the key of the object', period };
    const error = new CryptodlError(code, 'said by the test');
    notes.noteFailure({ series: SERIES, settings: { format: 'parquet' } }, object, error);
  };

describe('a failure', () => {
  it('is remembered once, however often it happens, and again with another code', async () => {
    const { folder, run } = scene();
    await run(fail('zip-broken'));
    await run(fail('zip-broken'));
    expect(manifestLines(folder)).toMatchObject([{ failed: 'zip-broken', first: '2026-11-20' }]);
    await run(fail('row-malformed'));
    expect(manifestLines(folder)).toMatchObject([{ failed: 'zip-broken' }, { failed: 'row-malformed' }]);
  });

  it.each(['1970-01-01', '1999-12-31', '2200-01-01'])(
    'of %s is not remembered, because readers refuse such a line',
    async (text) => {
      const { folder, run } = scene();
      await run(fail('zip-broken', dayPeriod(day(text))));
      expect(readFileSync(manifestPlace(folder).path, 'utf8')).toBe('');
    },
  );

  it('of an object that was not begun before the time was over is not remembered', async () => {
    const { folder, run } = scene();
    await run(fail('time-over'));
    expect(readFileSync(manifestPlace(folder).path, 'utf8')).toBe('');
  });

  it('of a month is the reason of each of its days', async () => {
    const { folder, run } = scene();
    await run(fail('zip-broken', monthPeriod(monthOf(day('2026-10-01')))));
    const { absences } = await readManifest(folder, ARCHIVE);
    const told = reasons([], { absences, today: day('2026-11-21') });
    const reasonOf = (of: number): string => told(of).reason;
    expect(reasonOf(day('2026-10-31'))).toBe('failed:zip-broken');
    expect(reasonOf(day('2026-11-01'))).not.toBe('failed:zip-broken');
  });
});

it('REST was asked for the wanted day only, and not for the late days before it', async () => {
  const { folder, run } = scene();
  await run((notes) => {
    notes.note(SERIES, DAY, 'not-published-yet', { sinceDay: day('2026-11-18'), hasAskedRest: true });
  });
  const told = manifestLines(folder).map(({ first, last, rest }) => [first, last, rest !== undefined]);
  expect(told).toEqual([
    ['2026-11-18', '2026-11-19', false],
    ['2026-11-20', '2026-11-20', true],
  ]);
});
