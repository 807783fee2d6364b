/** A run that continues a lake of day partitions sees each change of its files and manifests since the last run. */
import {
  appendFileSync,
  cpSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { manifestLines, manifestOf } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

/** More days than `fileSizes` reads in one turn of the event loop. */
const scene = useScene({ archive: [{ from: '2026-08-01', to: '2026-11-20' }] });
const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const FLAGS =
  '--interval 1h --cadence daily --partition day --symbols BTCUSDT --from 2026-08-01 --to 2026-11-20';

let made: string;
beforeAll(async () => {
  made = (await scene.vision(FLAGS, { lake: 'made', sceneFlags: '' })).lake;
});

/** Copies the lake, changes the copy, and continues it. */
async function continued(lake: string, change: (folder: string, manifest: string) => void) {
  const copy = join(dirname(made), lake);
  cpSync(made, copy, { recursive: true });
  const folder = join(copy, SERIES);
  const manifest = manifestOf(folder);
  const before = manifestLines(folder).length;
  change(folder, manifest);
  const run = await scene.vision('--format parquet --recheck-days 3', { lake, sceneFlags: '' });
  const fetched =
    run.code === 2
      ? []
      : manifestLines(folder)
          .slice(before)
          .map(({ period }) => period);
  return { ...run, fetched };
}

/** Changes the line of a day. Returns its number, because days are written in any order. */
function edited(manifest: string, day: string, from: RegExp, to: string): number {
  const lines = readFileSync(manifest, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes(`"period":"${day}"`));
  const text = lines[at]?.replace(from, to) ?? '';
  expect(text).not.toBe(lines[at]);
  writeFileSync(manifest, lines.with(at, text).join('\n'));
  return at + 1;
}

it('fetches nothing if nothing has changed', async () => {
  const { code, stderr, fetched } = await continued('unchanged', () => undefined);
  expect([code, fetched, stderr]).toEqual([0, [], expect.stringContaining('to fetch   nothing') as string]);
});

describe('fetches the day again', () => {
  it.each<[string, string, (path: string) => void]>([
    [
      'a removed file',
      '2026-08-20',
      (path) => {
        rmSync(path);
      },
    ],
    [
      'a removed file of a later slice',
      '2026-11-02',
      (path) => {
        rmSync(path);
      },
    ],
    [
      'a truncated file',
      '2026-09-03',
      (path) => {
        truncateSync(path, 100);
      },
    ],
    [
      'an empty file',
      '2026-08-01',
      (path) => {
        truncateSync(path);
      },
    ],
    [
      'a file with more bytes',
      '2026-10-04',
      (path) => {
        appendFileSync(path, 'x');
      },
    ],
  ])('of %s', async (name, day, change) => {
    const { code, fetched } = await continued(name.replaceAll(' ', '-'), (folder) => {
      change(join(folder, `${day}.parquet`));
    });
    expect([code, fetched]).toEqual([0, [day]]);
  });

  it('of a symbolic link in place of a file', async () => {
    const day = '2026-09-05';
    const { stderr, fetched } = await continued('link', (folder) => {
      const path = join(folder, `${day}.parquet`);
      renameSync(path, join(folder, 'kept'));
      symlinkSync('kept', path);
    });
    expect([fetched, stderr]).toEqual([[day], expect.not.stringContaining('to fetch   nothing') as string]);
  });

  it('if a line of the manifest names another size of its file', async () => {
    const day = '2026-09-06';
    const { fetched } = await continued('size', (_, manifest) => {
      edited(manifest, day, /"fileBytes":/, '"fileBytes":1');
    });
    expect(fetched).toEqual([day]);
  });

  it('if a recent line has another ETag than the listing', async () => {
    const day = '2026-11-19';
    const { fetched } = await continued('etag', (_, manifest) => {
      edited(manifest, day, /"etag":"[^"]*"/, '"etag":"other"');
    });
    expect(fetched).toEqual([day]);
  });
});

describe('stops', () => {
  it.each([
    ['that is damaged', /"sha256":"./, '"sha256":"x', 'is damaged'],
    ['of another series', /BTCUSDT-1h/, 'ETHUSDT-1h', 'is damaged'],
    ['with a file outside of the series', /"file":"/, '"file":"../', 'is damaged'],
    ['of another period than its key', /"period":"2026-09-07"/, '"period":"2026-09-08"', 'is damaged'],
    ['of a newer program', /"v":1/, '"v":2', 'has version 2'],
  ])('at a line %s, and names it', async (name, from, to, says) => {
    let line = 0;
    const { code, stderr } = await continued(name.replaceAll(' ', '-'), (_, manifest) => {
      line = edited(manifest, '2026-09-07', from, to);
    });
    const place = `BTCUSDT.jsonl line ${line} ${says}`;
    expect([code, stderr]).toEqual([1, expect.stringContaining(place) as string]);
  });
});
