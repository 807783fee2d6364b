/** The package as users get it: packed, installed in an empty folder from the registry, and used from there. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess, SpawnSyncReturns } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';

describe('the tarball of npm pack', () => {
  const scratch = scratchFolder();
  const home = join(scratch, 'home');
  let url = '';
  let server: ChildProcess | undefined;
  beforeAll(async () => {
    makeArchive(join(scratch, 'archive'), {
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT'],
      from: '2026-11-14',
      to: '2026-11-20',
      cadence: 'daily',
    });
    mkdirSync(home);
    // The tier has built the program.
    const packed = run(
      'npm',
      ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch],
      REPOSITORY,
    );
    writeFileSync(join(home, 'package.json'), '{ "private": true, "type": "module" }\n');
    const tarball = join(scratch, packed.stdout.trim());
    const installed = run('npm', ['install', '--silent', tarball], home);
    if (installed.status !== 0) throw new Error(installed.stderr);
    const binary = join(home, 'node_modules/.bin/cryptodl');
    server = spawn(binary, ['serve', join(scratch, 'archive'), '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    url = await firstLine(server);
  }, 300_000);
  afterAll(() => server?.kill());

  const place = (): string[] => ['--archive-url', url, '--now', NOW];
  const cryptodl = (...args: readonly string[]): SpawnSyncReturns<string> =>
    run('npx', ['--no', '--', 'cryptodl', ...args], home);

  it('has a help text for each command that the help of the program names', () => {
    const { status, stdout } = cryptodl('--help');
    expect(status).toBe(0);
    const commands = [...(/^Commands:\n((?:.+\n)+)/m.exec(stdout)?.[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)];
    expect(commands.length).toBeGreaterThan(10);
    for (const [, command = ''] of commands) {
      const help = cryptodl(command, '--help');
      expect({ command, status: help.status }).toEqual({ command, status: 0 });
      expect(help.stdout).toContain(`Usage: cryptodl ${command}`);
    }
  });

  it('downloads, continues, queries and verifies', () => {
    const week = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--days', '7', ...place()];
    expect(cryptodl(...week)).toMatchObject({ status: 0, stderr: expect.stringContaining('7 ok') });
    expect(cryptodl(...week)).toMatchObject({ status: 0, stderr: expect.stringContaining('7 skipped') });
    expect(cryptodl('sql', 'SELECT count(*) AS rows FROM um_klines', '--json').stdout).toBe('{"rows":168}\n');
    expect(cryptodl('verify').status).toBe(0);
  });

  it('is a library with types', () => {
    const options = {
      symbols: 'BTCUSDT',
      interval: '1h',
      days: 7,
      archiveUrl: url,
      now: NOW,
      out: './library',
    };
    writeFileSync(
      join(home, 'program.js'),
      `import { vision } from 'cryptodl';
      const { outcomes } = await vision(${JSON.stringify(options)}).summary();
      console.log(outcomes.ok, outcomes.failed);`,
    );
    expect(run('node', ['program.js'], home).stdout).toBe('7 0\n');
    expect(filesBelow(join(home, 'library'), '.parquet')).toHaveLength(1);
    expect(filesBelow(join(home, 'node_modules/cryptodl/dist'), 'library.d.ts')).toHaveLength(1);
  });
});

/** The first line of standard output. */
function firstLine({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    stdout?.on('data', (chunk: Buffer) => {
      text += String(chunk);
      if (text.includes('\n')) resolve(text.split('\n')[0] ?? '');
    });
    stdout?.on('close', () => {
      reject(new Error('no line'));
    });
  });
}

function run(program: string, args: readonly string[], cwd: string): SpawnSyncReturns<string> {
  return spawnSync(program, args, { cwd, encoding: 'utf8' });
}
