/** The session of docs/automation.md: schedule, check, repair. Without a terminal, in an environment like that of cron. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { scratchFolder } from '../helpers/folders.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));
const DOCUMENT = readFileSync(new URL('../../docs/automation.md', import.meta.url), 'utf8');
const SCHEDULE = / \| \(crontab -l; cat\) \| crontab -$/;
/** Comments behind a command say how it ends. */
const ENDS_WITH = /# exit code (\d+)/;

interface Command {
  readonly line: string;
  readonly output: readonly string[];
}

/** The commands of the session, each with what stands below it. */
function session(): Command[] {
  const [, section = ''] = DOCUMENT.split('## A session: schedule, check, repair\n');
  const [, block = ''] = /```console\n([\s\S]*?)```/.exec(section) ?? [];
  const commands: { line: string; output: string[] }[] = [];
  for (const line of block.split('\n').filter(isText)) {
    if (line.startsWith('$ ')) commands.push({ line: line.slice(2), output: [] });
    else commands.at(-1)?.output.push(line);
  }
  return commands;
}

const isText = (line: string): boolean => line !== '';

/** Sizes and times differ from machine to machine. */
const general = (line: string): string =>
  line.replaceAll(/\b[\d.]+ ?(ms|s|B|kB|MB)(\/s)?(?![\w])/g, '#').replaceAll(/\d+ requests/g, '#');

describe('the session of docs/automation.md', () => {
  const scratch = scratchFolder();
  let archive: TestArchive;
  beforeAll(async () => {
    const folder = join(scratch, 'archive');
    const what = { market: 'um', dataset: 'klines', interval: '1h', cadence: 'daily' } as const;
    const days = { from: '2026-10-22', to: '2026-11-21' };
    makeArchive(folder, { ...what, ...days, symbols: ['BTCUSDT', 'ETHUSDT'] });
    archive = await startArchive(folder);
    mkdirSync(join(scratch, 'bin'));
    // The addresses and folders of a user's config file. Only this program has them in its environment.
    const places = [`CRYPTODL_ARCHIVE_URL=${archive.url}`, `CRYPTODL_STATE_DIR='${join(scratch, 'state')}'`];
    const now = 'CRYPTODL_NOW=2026-11-21T09:00:00Z';
    // The file that the scheduled line reads.
    const settings = join(scratch, '.config/cryptodl');
    mkdirSync(settings, { recursive: true });
    const ofCron = [...places, 'CRYPTODL_NOW=2026-11-22T08:05:00Z'];
    writeFileSync(join(settings, 'environment'), `${ofCron.join('\n')}\n`);
    const program = join(scratch, 'bin', 'cryptodl');
    writeFileSync(
      program,
      `#!/bin/sh\nexec env ${places.join(' ')} ${now} '${process.execPath}' '${BIN}' "$@"\n`,
    );
    chmodSync(program, 0o755);
  });
  afterAll(() => archive.close());

  async function run(line: string): Promise<{ code: number | null; said: string[]; stdout: string }> {
    const env = { HOME: scratch, PATH: `${join(scratch, 'bin')}:/usr/bin:/bin` };
    const child = spawn('sh', ['-c', line], { cwd: scratch, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const code = new Promise<number | null>((resolve) => child.once('close', resolve));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await code, said: (stdout + stderr).split('\n').filter(isText), stdout };
  }

  it('goes as it is told there, and the scheduled line brings the next day', async () => {
    const commands = session();
    expect(commands.length).toBeGreaterThan(8);
    let scheduled = '';
    for (const { line, output } of commands) {
      const { code, said, stdout } = await run(line.replace(SCHEDULE, ''));
      const expected = Number(ENDS_WITH.exec(line)?.[1] ?? 0);
      if (SCHEDULE.test(line)) scheduled = stdout;
      const shown = SCHEDULE.test(line) ? [] : said.map(general).sort();
      expect([line, code, shown]).toEqual([line, expected, output.map(general).sort()]);
    }
    const cron = scheduled.split('\n').find((one) => one.startsWith('5 8 * * * ')) ?? '';
    const nextDay = cron
      .replace(/^5 8 \* \* \* /, '')
      .replaceAll('\\%', '%')
      .replace(/--jitter \S+/, '');
    expect(await run(nextDay)).toEqual({ code: 0, said: [], stdout: '' });
    expect((await run("cryptodl sql --out lake 'SELECT count(*) FROM um_klines'")).stdout).toContain('1488');
  }, 120_000);
});
