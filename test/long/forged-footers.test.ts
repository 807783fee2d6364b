/** Nothing from the footer of a Parquet file gets into a manifest unchecked. */
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, manifestLines, manifestOf, parquetMetadata } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const FILE = `${SERIES}/2026-10.parquet`;
const NOW = ['--now', '2026-10-04T08:00:00Z'];
const RUN = [
  'vision',
  '--symbols',
  'BTCUSDT',
  '--interval',
  '1h',
  '--from',
  '2026-10-01',
  '--to',
  '2026-10-02',
];
const DAY = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-10-02.zip';

const scene = useScene({
  archive: [
    { dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'], from: '2026-10-01', to: '2026-10-02' },
  ],
});
const sound = join(scene.scratch, 'sound');
const soundRows = `read_parquet('${join(sound, FILE)}', hive_partitioning = false)`;

interface Stated {
  [name: string]: unknown;
  settings: Record<string, unknown>;
  objects: Record<string, unknown>[];
}
let stated: Stated;

beforeAll(async () => {
  await cryptodlOk([...RUN, ...places(sound)]);
  const { key_value_metadata: entries = [] } = await parquetMetadata(join(sound, FILE));
  stated = JSON.parse(entries.find(({ key }) => key === 'cryptodl')?.value ?? '') as Stated;
});

function places(lake: string): string[] {
  return ['--out', lake, '--archive-url', scene.archive.url, ...NOW, ...FAST];
}

/** A lake with the rows of the sound file below another footer, and without a manifest. */
async function forged(forge: (footer: Stated) => unknown): Promise<string> {
  const lake = scene.newFolder();
  cpSync(join(sound, SERIES), join(lake, SERIES), { recursive: true });
  const footer = structuredClone(stated);
  const text = JSON.stringify(forge(footer) ?? footer).replaceAll("'", "''");
  await runSql(
    `COPY (FROM ${soundRows}) TO '${join(lake, FILE)}' (FORMAT parquet, KV_METADATA {cryptodl: '${text}'})`,
  );
  return lake;
}

/** A lake whose only file has the rows and the footer of the sound file, moved to another month. */
async function shifted(month: string): Promise<string> {
  const lake = scene.newFolder();
  mkdirSync(join(lake, SERIES), { recursive: true });
  const text = JSON.stringify(stated).replaceAll('2026-10', month).replaceAll("'", "''");
  const shift = `(TIMESTAMP '${month}-01' - TIMESTAMP '2026-10-01')`;
  const times = ['open_time', 'close_time'].map((name) => `${name} + ${shift} AS ${name}`);
  const rows = `SELECT * REPLACE (${times.join(', ')}) FROM ${soundRows}`;
  await runSql(
    `COPY (${rows}) TO '${join(lake, SERIES, month)}.parquet' (FORMAT parquet, KV_METADATA {cryptodl: '${text}'})`,
  );
  return lake;
}

async function runSql(statement: string): Promise<void> {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  await connection.run(statement);
  connection.closeSync();
  instance.closeSync();
}

const second = (fields: Readonly<Record<string, unknown>>) => (footer: Stated) => {
  Object.assign(footer.objects[1] ?? {}, fields);
};
const whole = (fields: Readonly<Record<string, unknown>>) => (footer: Stated) => {
  Object.assign(footer, fields);
};

/** The second object of a footer, on many days from 2000 on. */
function daysOf({ objects }: Stated, count: number): unknown[] {
  return Array.from({ length: count }, (_, index) => {
    const day = new Date(Date.UTC(2000, 0, 1 + index)).toISOString().slice(0, 10);
    return { ...objects[1], key: DAY.replace('2026-10-02', day) };
  });
}

const FORGED: readonly [string, (footer: Stated) => unknown][] = [
  ['a number as ETag', second({ etag: 5 })],
  ['an object as ETag', second({ etag: { text: 'x' } })],
  ['an ETag of 1 MB', second({ etag: 'e'.repeat(1e6) })],
  ['control characters in the ETag', second({ etag: 'a\u001b[2Jb' })],
  ['a number as time', second({ lastModified: 1 })],
  ['a time with a line feed', second({ lastModified: 'a\nb' })],
  ['a list as digest', (footer) => second({ sha256: [footer.objects[1]?.['sha256']] })(footer)],
  ['a number as digest', second({ sha256: 5 })],
  ['a text as size', second({ bytes: '5' })],
  ['a negative size', second({ bytes: -1 })],
  ['an unknown check', second({ verified: 'md5' })],
  ['a key with ..', second({ key: DAY.replace('data/', 'data/../data/') })],
  ['a key outside of the lake', second({ key: '../../../../etc/passwd' })],
  ['a key with a line feed', second({ key: `${DAY}\n` })],
  ['a key of another symbol', second({ key: DAY.replaceAll('BTC', 'ETH') })],
  ['a number as key', second({ key: 5 })],
  ['a key twice', (footer) => second({ key: footer.objects[0]?.['key'] })(footer)],
  ['another symbol', whole({ symbol: 'ETHUSDT' })],
  ['another interval', whole({ interval: '1m' })],
  ['another dataset', whole({ dataset: 'markPriceKlines' })],
  ['a later format', whole({ v: 2 })],
  ['null as object', whole({ objects: [null] })],
  ['a number as objects', whole({ objects: 5 })],
  ['no objects', whole({ objects: [] })],
  ['100,000 objects', (footer) => whole({ objects: Array(1e5).fill(footer.objects[0]) })(footer)],
  ['100,000 days', (footer) => whole({ objects: daysOf(footer, 1e5) })(footer)],
  ['500 days', (footer) => whole({ objects: daysOf(footer, 500) })(footer)],
  ['further fields of 1 MB', whole({ note: 'x'.repeat(1e6) })],
  ['null as settings', whole({ settings: null })],
  ['a number in the settings', (footer) => void (footer.settings['partition'] = 5)],
  ['settings of CSV', (footer) => void (footer.settings['format'] = 'csv')],
  ['null as footer', () => 'null'],
  ['a list as footer', () => [1]],
];

const verify = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['verify', '--out', lake, ...NOW, '--json', ...flags]);

/** The manifest, which must be small and sound. */
async function manifestText(lake: string): Promise<string> {
  const path = manifestOf(join(lake, SERIES));
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  expect(text.length).toBeLessThan(5000);
  expect((await verify(lake)).stdout).not.toContain('line-');
  return text;
}

it.each(['1969-01', '2016-12', '2026-11', '2099-01'])('a file of %s is not adopted', async (month) => {
  const lake = await shifted(month);
  expect((await verify(lake, '--fix')).stdout).not.toContain('adopted');
  expect((await cryptodl([...RUN, ...places(lake)])).code).toBe(0);
  await manifestText(lake);
});

it('a file of the month before is adopted', async () => {
  const lake = await shifted('2026-09');
  expect((await verify(lake, '--fix')).stdout).toContain('adopted');
});

describe('a footer with', () => {
  it.each(FORGED)('%s is not adopted by verify --fix', async (_, forge) => {
    const lake = await forged(forge);
    const fixed = await verify(lake, '--fix');
    expect([fixed.code, fixed.stdout]).toEqual([expect.any(Number), expect.not.stringContaining('adopted')]);
    expect(filesBelow(join(lake, '_quarantine'), '.parquet')).toHaveLength(1);
    expect(await manifestText(lake)).not.toContain('"kind":"object"');
  });

  it.each(FORGED.filter(([name]) => /key|objects|days|symbol|settings|ETag of/.test(name)))(
    '%s leaves a sound manifest when a run writes the file',
    async (_, forge) => {
      const lake = await forged(forge);
      const { code } = await cryptodl([...RUN, ...places(lake)]);
      expect(code).toBe(0);
      await manifestText(lake);
      expect(manifestLines(join(lake, SERIES)).filter(({ kind }) => kind === 'object')).toHaveLength(2);
    },
  );

  it('no objects does not let a run overwrite the file', async () => {
    const lake = await forged(whole({ objects: [] }));
    expect((await cryptodl([...RUN, ...places(lake)])).code).toBe(0);
    expect(filesBelow(join(lake, '_quarantine'), '.parquet')).toHaveLength(1);
  });

  it('objects in another order is adopted with them in the order of their days', async () => {
    const lake = await forged((footer) => void (footer.objects = footer.objects.toReversed()));
    expect((await verify(lake, '--fix')).stdout).toContain('adopted');
    const days = manifestLines(join(lake, SERIES)).map(({ period }) => period);
    expect(days).toEqual(['2026-10-01', '2026-10-02']);
  });

  it('unknown fields is adopted without them', async () => {
    const lake = await forged((footer) => {
      const note = 'x'.repeat(1e4);
      footer.settings['note'] = note;
      Object.assign(footer, { note });
      second({ note })(footer);
    });
    expect((await verify(lake, '--fix')).stdout).toContain('adopted');
    expect(await manifestText(lake)).not.toContain('note');
  });
});
