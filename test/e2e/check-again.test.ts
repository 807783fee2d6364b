/** `cryptodl check` keeps the states of unchanged series in `.cryptodl/states.json`. What it says is what it says without the file. */
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-20', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT',
});
const FOLDER = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const states = (lake: string): string => join(lake, '.cryptodl/states.json');
const manifest = (lake: string): string => join(lake, '_manifests', `${FOLDER}.jsonl`);
const data = (lake: string, month = '2026-11'): string => join(lake, FOLDER, `${month}.parquet`);

async function check(lake: string, now = scene.now): Promise<string> {
  const { stdout, stderr } = await cryptodl(['check', '--out', lake, '--now', now, '--json']);
  return stdout + stderr;
}

/** A lake with month files that a second run has extended, and the states of both series. */
async function keptLake(name: string): Promise<string> {
  const { lake } = await scene.vision('--from 2026-10-20 --now 2026-11-20T12:00:00Z', { lake: name });
  cpSync(data(lake), `${lake}-before.parquet`);
  await scene.vision('--from 2026-10-20', { lake: name });
  // Node sets times of whole milliseconds, so `rewrite` sets these back exactly.
  for (const path of [manifest(lake), data(lake)]) utimesSync(path, 1e9, 1e9);
  // States are kept once their files are older than a tenth of a second.
  while (!existsSync(states(lake)) || !isKept(lake)) await check(lake);
  return lake;
}

function isKept(lake: string): boolean {
  return ['BTCUSDT', 'ETHUSDT'].every((symbol) =>
    readFileSync(states(lake), 'utf8').includes(`"um klines 1h ${symbol}"`),
  );
}

/** The verdict with the kept states, which must be that without them. */
async function agreed(lake: string, now?: string): Promise<string> {
  const kept = await check(lake, now);
  rmSync(states(lake), { force: true });
  expect(await check(lake, now)).toBe(kept);
  return kept;
}

/** Replaces the content of a file in its place, and sets its times back. */
function rewrite(path: string, content: string | Buffer): void {
  const { atime, mtime } = statSync(path);
  writeFileSync(path, content);
  utimesSync(path, atime, mtime);
}

const orderPath = (lake: string): string => {
  const folder = join(lake, '.cryptodl/orders');
  return join(folder, readdirSync(folder)[0] ?? '');
};

interface Change {
  readonly what: string;
  readonly change: (lake: string) => void;
  readonly now?: string;
  readonly says: string;
}

const CHANGES: readonly Change[] = [
  {
    what: 'a data file is removed',
    change: (lake) => {
      rmSync(data(lake, '2026-10'));
    },
    says: '"rows":288',
  },
  {
    what: 'the folder of a series is removed',
    change: (lake) => {
      rmSync(join(lake, FOLDER), { recursive: true });
    },
    says: 'incomplete',
  },
  {
    what: 'the file before its last commit is restored',
    change: (lake) => {
      rewrite(data(lake), readFileSync(`${lake}-before.parquet`));
    },
    says: 'behind',
  },
  {
    what: 'a line of a manifest is changed, and its times are set back',
    change: (lake) => {
      const path = manifest(lake);
      rewrite(path, readFileSync(path, 'utf8').replace('"rows":24', '"rows":23'));
    },
    says: '"rows":1',
  },
  {
    what: 'a line is added to a manifest',
    change: (lake) => {
      const key = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-02.zip';
      const line = { v: 1, kind: 'dropped', key, format: 'parquet', at: '2026-11-21T00:00:00.000Z' };
      appendFileSync(manifest(lake), `${JSON.stringify(line)}\n`);
    },
    says: '"rows":24',
  },
  {
    what: 'a manifest is damaged',
    change: (lake) => {
      appendFileSync(manifest(lake), 'no line\n');
    },
    says: 'is damaged',
  },
  {
    what: 'a manifest is removed',
    change: (lake) => {
      rmSync(manifest(lake));
    },
    says: 'incomplete',
  },
  { what: 'a day has passed', change: () => undefined, now: '2026-11-25T12:00:00Z', says: 'behind' },
  {
    what: 'an order begins earlier',
    change: (lake) => {
      const path = orderPath(lake);
      writeFileSync(path, readFileSync(path, 'utf8').replace('2026-10-20', '2026-10-19'));
    },
    says: 'incomplete',
  },
  {
    what: 'the kept states are damaged',
    change: (lake) => {
      rmSync(data(lake));
      rewrite(states(lake), readFileSync(states(lake), 'utf8').replace('symbol=BTCUSDT', 'symbol=ETHUSDT'));
    },
    says: 'incomplete',
  },
  {
    what: 'the kept states are of another version',
    change: (lake) => {
      const text = readFileSync(states(lake), 'utf8');
      writeFileSync(states(lake), text.replace('"version":"', '"version":"9'));
    },
    says: 'complete',
  },
  {
    what: 'the kept states cannot be read',
    change: (lake) => {
      rmSync(states(lake));
      mkdirSync(states(lake));
    },
    says: 'complete',
  },
  { what: 'nothing', change: () => undefined, says: 'complete' },
];

describe('check with kept states', () => {
  it.each(CHANGES)('is right after the change: $what', async ({ what, change, now, says }) => {
    const lake = await keptLake(what.replaceAll(/\W+/g, '-'));
    change(lake);
    if (lstatSync(states(lake), { throwIfNoEntry: false })?.isDirectory() === true) {
      expect(await check(lake, now)).toContain(says);
      return;
    }
    expect(await agreed(lake, now)).toContain(says);
  });

  it('names a damaged manifest each time', async () => {
    const lake = await keptLake('damaged');
    appendFileSync(manifest(lake), '{"v":1,"kind":"object"}\n');
    for (const _ of [1, 2, 3]) expect(await check(lake)).toContain('is damaged');
  });

  it('leaves the file as it is while nothing changes', async () => {
    const lake = await keptLake('unchanged');
    const { ino, mtimeMs } = statSync(states(lake));
    expect(await check(lake)).toContain('"complete"');
    expect(statSync(states(lake))).toMatchObject({ ino, mtimeMs });
    expect(readdirSync(join(lake, '.cryptodl')).filter((name) => name.includes('partial'))).toEqual([]);
  });

  it.skipIf(process.getuid?.() === 0)('needs no right to write', async () => {
    const lake = await keptLake('read-only');
    rmSync(states(lake));
    chmodSync(join(lake, '.cryptodl'), 0o555);
    try {
      expect(await check(lake)).toContain('"complete"');
      expect(existsSync(states(lake))).toBe(false);
    } finally {
      chmodSync(join(lake, '.cryptodl'), 0o755);
    }
  });
});
