/** The examples of docs/library.md and of the README, as programs of a user: with the package by its name, and the archive on loopback. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { scratchFolder } from '../helpers/folders.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';
const folder = scratchFolder();
let archive: TestArchive;
let outputs: ReadonlyMap<string, string>;

/** The blocks of a document. The first block of docs/library.md only imports. */
function examplesOf(path: string): string[] {
  const document = readFileSync(join(ROOT, path), 'utf8');
  return [...document.matchAll(/```js\n(.*?)```/gs)].map(([, code = '']) => code);
}

beforeAll(async () => {
  const bars = { market: 'um', dataset: 'klines', interval: '1h', symbols: ['BTCUSDT', 'ETHUSDT'] } as const;
  makeArchive(join(folder, 'archive'), { ...bars, from: '2026-10-01', to: '2026-11-20', cadence: 'daily' });
  makeArchive(join(folder, 'archive'), { ...bars, from: '2026-10-01', to: '2026-10-31', cadence: 'monthly' });
  archive = await startArchive(join(folder, 'archive'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/cryptodl'));
  outputs = await printed();
});
afterAll(() => archive.close());

/** The examples read the real archive today; here, each call gets the test archive and its day. */
function local(example: string): string {
  const places = `archiveUrl: '${archive.url}', now: '${NOW}'`;
  return example
    .replaceAll(/((?:vision|audit|repair|list)\((?:'[a-z]+', )?\{|const options = \{)/g, `$1 ${places},`)
    .replace('coverage({', `coverage({ now: '${NOW}',`);
}

const EXAMPLES: readonly (readonly [name: string, output: unknown])[] = [
  ['vision', '4 objects, 96 rows, report null, exit code 0\n'],
  ['repair', '0 objects were fetched again\n'],
  ['list', 'BTCUSDT ETHUSDT\n'],
  ['coverage', '2 series, the least complete has 100 %\n'],
  ['verify', '2 files, 0 kinds of findings, exit code 0\n'],
  // The months and the days of the synthetic archive have different rows.
  [
    'audit',
    expect.stringMatching(/^BTCUSDT 2026-10 rows-differ 744 rows.*\n1 of 1 months compared, exit code 4\n$/),
  ],
  ['sql', 'BTCUSDT 48 2026-11-20T23:00:00.000Z\nETHUSDT 48 2026-11-20T23:00:00.000Z\n'],
  [
    'CryptodlError, vision',
    expect.stringContaining('usage (2): --from 2026-11-20 is after --to 2026-11-19\nchoose days from '),
  ],
  ['vision, last', '0 objects to fetch\n2 outcomes\n'],
];

/** By name: what each example prints. All run in one process, one after the other. */
async function printed(): Promise<ReadonlyMap<string, string>> {
  const files = EXAMPLES.map(([name]) => {
    const [imports = '', last] = name.split(', last');
    const found = examplesOf('docs/library.md').filter((code) =>
      code.startsWith(`import { ${imports} } from 'cryptodl';`),
    );
    writeFileSync(join(folder, `${name}.mjs`), local((last === undefined ? found[0] : found.at(-1)) ?? ''));
    return `console.log('=== ${name}');\nawait import('./${name}.mjs');\n`;
  });
  writeFileSync(join(folder, 'all.mjs'), files.join(''));
  const child = spawn(process.execPath, ['all.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const code = new Promise((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect([await code, stderr]).toEqual([0, '']);
  const parts = stdout.split('=== ').map((part) => [part.split('\n')[0] ?? '', part] as const);
  return new Map(parts.map(([name, part]) => [name, part.slice(name.length + 1)]));
}

it.each(EXAMPLES)('docs/library.md: %s', (name, output) => {
  expect(outputs.get(name)).toEqual(output);
});
