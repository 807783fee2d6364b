/** A staged file is read back before it is published. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { filesBelow } from '../helpers/lake.js';
import { preload } from '../helpers/preload.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [
    { dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'], from: '2026-10-01', to: '2026-10-02' },
  ],
});

function run(lake: string, to: string, env: Record<string, string> = {}): ReturnType<typeof scene.vision> {
  return scene.vision(
    ['--symbols', 'BTCUSDT', '--interval', '1h', '--from', '2026-10-01', '--to', to, '--out', lake],
    { env },
  );
}

/** The environment of a process whose staged files have the content of another file when they are read. */
function disk(other: string): Record<string, string> {
  return preload(
    scene.scratch,
    `import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
const { open } = fs;
fs.open = (path, flags, ...others) =>
  open(String(path).endsWith('.partial') && flags !== 'r+' ? ${JSON.stringify(other)} : path, flags, ...others);
syncBuiltinESMExports();`,
  );
}

it.each<readonly [string, (other: string, whole: string) => void, string]>([
  ['other rows', (other, whole) => copyFileSync(whole, other), 'has 48 rows when read back, 24 were written'],
  ['no Parquet', (other) => writeFileSync(other, 'text'), 'is not a complete Parquet file'],
])('a file with %s is not published', async (name, make, message) => {
  const full = scene.newFolder();
  await run(full, '2026-10-02');
  const [whole = ''] = filesBelow(full, '.parquet');
  const other = join(scene.scratch, `${name.replace(' ', '-')}.parquet`);
  make(other, join(full, whole));
  const lake = scene.newFolder();
  const { code, stderr } = await run(lake, '2026-10-01', disk(other));
  expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  expect(filesBelow(lake).filter((path) => /\.(?:parquet|partial)$/.test(path))).toEqual([]);
});
