/** The types of the package, as the compiler of a user sees them. */
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSC = join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');
const folder = scratchFolder();

const RIGHT = `
import { audit, coverage, CryptodlError, list, metrics, repair, sql, verify, vision } from 'cryptodl';
import type { RunSummary, SqlRow, TaskOutcome, VisionOptions } from 'cryptodl';

const options: VisionOptions = {
  market: ['um', 'cm'], dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'], from: new Date(), to: '2024-01-31',
  format: 'csv', force: true, maxWait: '10m', retries: 3, limits: { archive: '100/s' },
};
export async function all(signal: AbortSignal): Promise<RunSummary> {
  const run = vision(options, { signal, onPlan: ({ totals }) => totals.fetch, onWarning: (text) => text.length });
  for await (const object of run) {
    if (object.outcome === 'ok') object.rows?.toFixed();
    if (object.outcome === 'failed') object.message.trim();
  }
  const outcomes: TaskOutcome[] = await metrics({ symbols: 'BTCUSDT', days: 7 }).toArray();
  const exitCode: number = (await repair({ out: 'data' }).summary()).exitCode + outcomes.length;
  const bytes: (number | undefined)[] = (await list('periods', { symbols: 'BTCUSDT' }).toArray()).map((item) => item.bytes);
  const intervals: readonly string[] = (await list('datasets').toArray())[0]?.intervals ?? [];
  const percent: number | null = (await coverage({ min: 99.9, by: 'month' }).toArray())[0]?.percent ?? null;
  const found: Record<string, number> = { ...(await verify({ deep: true, fix: true }).summary()).findings };
  for await (const item of audit({ months: 1, prefer: 'daily' })) if (item.event === 'failed') item.code satisfies string;
  const rows: SqlRow[] = await sql('SELECT 1 AS one').toArray();
  const one: unknown = rows[0]?.['one'];
  try {
    return await vision(options).summary();
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'locked') console.log(error.hint?.trim(), error.exitCode + 1);
    throw new Error(String([bytes, intervals, percent, found, exitCode, one]));
  }
}
`;

const WRONG = `
import { audit, coverage, list, metrics, repair, sql, verify, vision } from 'cryptodl';
export const calls = [
  () => vision({ market: ['usdm', 'coinm', 'spot'] }),
  // @ts-expect-error no such market
  () => vision({ market: 'nasdaq' }),
  // @ts-expect-error a flag of the command line
  () => vision({ quiet: true }),
  // @ts-expect-error an option of verify
  () => vision({ fix: true }),
  // @ts-expect-error an option of vision
  () => metrics({ fill: 'rest' }),
  // @ts-expect-error repair keeps the format of the lake
  () => repair({ numbers: 'string' }),
  // @ts-expect-error sql changes nothing
  () => sql('SELECT 1', { force: true }),
  // @ts-expect-error the query is the first argument
  () => sql({ query: 'SELECT 1' }),
  // @ts-expect-error a list of the plural
  () => list('symbol'),
  // @ts-expect-error the items of markets have no bytes
  async () => (await list('markets').toArray())[0]?.bytes,
  // @ts-expect-error a hook of the downloads
  () => verify({}, { onPlan: () => undefined }),
  // @ts-expect-error a controller is not its signal
  () => audit({}, { signal: new AbortController() }),
  // @ts-expect-error a period of coverage
  () => coverage({ by: 'year' }),
  // @ts-expect-error a flag that only prints
  () => coverage({ summary: true }),
];
`;

beforeAll(() => {
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
  symlinkSync(ROOT, join(folder, 'node_modules/cryptodl'));
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder, 'right.ts'), RIGHT);
  writeFileSync(join(folder, 'wrong.ts'), WRONG);
});

it.each([
  ['nodenext', 'nodenext'],
  ['bundler', 'esnext'],
])(
  'with moduleResolution %s, right calls compile and wrong ones do not',
  async (moduleResolution, module) => {
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      target: 'es2023',
      module,
      moduleResolution,
      types: ['node'],
    };
    const project = join(folder, `tsconfig.${moduleResolution}.json`);
    writeFileSync(project, JSON.stringify({ compilerOptions, files: ['right.ts', 'wrong.ts'] }));
    const said = await new Promise((resolve) => {
      execFile(process.execPath, [TSC, '-p', project], (_, stdout) => {
        resolve(stdout);
      });
    });
    expect(said).toBe('');
  },
);

it('CommonJS loads the package with import(), and with require() where Node has that', async () => {
  const script = `import('cryptodl').then(async ({ list }) => {
    console.log((await list('markets').toArray()).length);
    if (process.features.require_module) console.log(typeof require('cryptodl').vision);
  })`;
  writeFileSync(join(folder, 'common.cjs'), script);
  const said = await new Promise((resolve) => {
    execFile(process.execPath, ['common.cjs'], { cwd: folder }, (_, stdout, stderr) => {
      resolve(stdout + stderr.replaceAll(/.*(?:ExperimentalWarning|--trace-warnings).*\n/g, ''));
    });
  });
  const required = (process.features as { readonly require_module?: boolean }).require_module === true;
  expect(said).toBe(required ? '4\nfunction\n' : '4\n');
});
