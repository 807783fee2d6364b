/** A lake of an earlier version with two series, a report, a quarantined object, and a commit that was not finished. */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cryptodl, cryptodlOk, FAST } from './cli.js';
import { toEarlierLayout } from './earlier-layout.js';
import { filesBelow } from './lake.js';
import type { Scene } from './scene.js';

export const BTC = 'binance/um/metrics/symbol=BTCUSDT';
export const ETH = 'binance/um/metrics/symbol=ETHUSDT';
const REFUSED = 'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2026-10-04.zip';
const FILE = '2026-10.parquet';
export const NOW = ['--now', '2026-10-06T08:00:00Z'];
export const EARLIER_ARCHIVE = [
  { dataset: 'metrics', symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-10-01', to: '2026-10-06' },
] as const;

export const placesOf = (scene: Pick<Scene, 'archive'>, lake: string): string[] => [
  '--out',
  lake,
  '--archive-url',
  scene.archive.url,
  ...NOW,
  ...FAST,
];

export interface EarlierLake {
  /** A copy of the lake with the unfinished commit of its second series: three more days. */
  readonly copy: () => string;
}

export async function earlierLake(scene: Scene): Promise<EarlierLake> {
  const first = join(scene.scratch, 'first');
  const second = join(scene.scratch, 'second');
  const run = (lake: string, symbols: string, to: string): string[] => [
    'vision',
    '--dataset',
    'metrics',
    '--symbols',
    symbols,
    '--from',
    '2026-10-01',
    '--to',
    to,
    ...placesOf(scene, lake),
  ];
  scene.archive.fault = (path, _request, response) => {
    if (path !== `/${REFUSED}`) return false;
    response.end('no zip');
    return true;
  };
  await cryptodl(run(first, 'BTCUSDT', '2026-10-04'));
  scene.archive.fault = undefined;
  await cryptodlOk(run(first, 'ETHUSDT', '2026-10-02'));
  cpSync(first, second, { recursive: true });
  await cryptodlOk(run(second, 'ETHUSDT', '2026-10-04'));
  for (const lake of [first, second]) toEarlierLayout(lake);
  return {
    copy: () => {
      const lake = scene.newFolder();
      cpSync(first, lake, { recursive: true });
      addJournal(lake, second);
      return lake;
    },
  };
}

function addJournal(lake: string, second: string): void {
  const own = join(lake, '.cryptodl');
  rmSync(own, { recursive: true, force: true });
  mkdirSync(join(own, 'tmp'), { recursive: true });
  cpSync(join(second, ETH, FILE), join(own, 'tmp', 'staged.partial'));
  const { dev, ino } = statSync(own, { bigint: true });
  const held = linesOf(lake).length;
  const journal = {
    lake: { path: lake, device: String(dev), inode: String(ino) },
    series: ETH,
    publications: [{ staged: 'staged.partial', target: FILE }],
    dead: [],
    lines: linesOf(second).slice(held),
  };
  writeFileSync(join(own, 'commit-00000000.json'), JSON.stringify(journal));
}

function linesOf(lake: string): unknown[] {
  const texts = readFileSync(join(lake, ETH, '_manifest.jsonl'), 'utf8')
    .trim()
    .split('\n');
  return texts.map((text): unknown => JSON.parse(text));
}

/** All files of the lake by path with their digests, its folders, and the files of cryptodl that a run must remove. */
export function stateOf(lake: string): string[] {
  const files = filesBelow(lake)
    .filter((path) => !path.startsWith('.cryptodl'))
    .map(
      (path) =>
        `${path} ${createHash('sha256')
          .update(readFileSync(join(lake, path)))
          .digest('hex')}`,
    );
  const folders = readdirSync(lake).map((name) => `${name}/`);
  const left = readdirSync(join(lake, '.cryptodl')).filter((name) => /^(upgrade|commit-)/.test(name));
  return [...files, ...folders, ...left].sort();
}
