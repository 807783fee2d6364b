/** `cryptodl schedule -- COMMAND`: the shell and systemd run what it prints. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));
const shell = promisify(execFile);
const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-20', to: '2026-11-20' }],
});
const { scratch } = scene;
/** Everything that one of cron, sh and systemd takes for something. */
const AWKWARD = 'it\'s 100% "my" $HOME\\data;\\% \\\\ `x`';
const cwd = join(scratch, AWKWARD);
const NOW = ['--now', '2026-11-21T12:00:00Z'];
/** A command that works, with a file and folders named relative to the working directory. */
let command: string[];

beforeAll(() => {
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'universe.txt'), 'BTCUSDT\n');
  command = ['vision', '--symbols', '@universe.txt,!ETH*', '--interval=1h', ...NOW];
  command.push('--archive-url', scene.archive.url, '--state-dir=state', '--log-file', '$log%.jsonl');
});

/** What cron hands to sh: `%` ends the line, a backslash before `%` or another one is dropped (do_command.c). */
function asCronRuns(line: string): string {
  const [, text = ''] = /^(?:\S+ ){5}(.*)$/.exec(line) ?? [];
  let handed = '';
  for (let at = 0; at < text.length; at += 1) {
    const next = text[at + 1] ?? '';
    if (text[at] === '%') return handed;
    if (text[at] === '\\' && next !== '') {
      handed += next === '%' || next === '\\' ? next : `\\${next}`;
      at += 1;
    } else handed += text[at] ?? '';
  }
  return handed;
}

/** Each is the name of a folder, and an argument. */
const NAMES = [
  AWKWARD,
  'ends in \\',
  'ends in a blank ',
  'two \\\\ and % and \\% and %% and \\\\%',
  `'"'`,
  '$HOME ${HOME} $$ `id` $(id)',
  '*?[a] {b,c} ~ # ; & | < > ! \\n',
  'Ünï \u{200B}\u{202E}code',
];

/** The value in a unit: a backslash at the end joins a line with the next one, and blanks around a value are dropped (systemd.syntax(7)). */
function valueIn(unit: string, name: string): string {
  const lines = unit.replaceAll('\\\n', ' ').split('\n');
  return (
    lines
      .find((line) => line.startsWith(`${name}=`))
      ?.slice(name.length + 1)
      .trim() ?? ''
  );
}

/** Words of ExecStart as systemd has them: double quotes with escapes, `%%`, and `$$` behind the first (systemd.service(5)). */
function asSystemdRuns(service: string): string[] {
  const line = valueIn(service, 'ExecStart');
  const words = line.match(/"(?:\\.|[^"\\])*"|\S+/g) ?? [];
  return words.map((word, index) => {
    const bare = word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\(.)/g, '$1') : word;
    // A single one of them is a specifier or a variable: gone.
    const text = bare.replaceAll(/%(%|.?)/g, (_, next: string) => (next === '%' ? '%' : ''));
    return index === 0
      ? text
      : text.replaceAll(/\$(\$|\w+)/g, (_, name: string) => (name === '$' ? '$' : ''));
  });
}

function lineOf(text: string): string {
  return text.split('\n').find((line) => /^\d/.test(line)) ?? '';
}

/** Text of the file that the comment names. */
function unitOf(text: string, ending: string): string {
  const [, unit = ''] = new RegExp(`^# \\S+\\.${ending}\n((?:(?!#).*\n)*)`, 'm').exec(text) ?? [];
  return unit;
}

function folderNamed(name: string): string {
  const folder = join(mkdtempSync(join(scratch, 'named-')), name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'universe.txt'), 'BTCUSDT\n');
  writeFileSync(join(folder, name), '{}');
  return folder;
}

async function scheduled(folder: string, asked: readonly string[], env = {}): Promise<string> {
  return (await cryptodlOk(['schedule', ...asked], { cwd: folder, env })).stdout;
}

describe('the line for cron', () => {
  it('runs in an empty environment, prints nothing, and writes the data', async () => {
    const { stdout } = await cryptodlOk(['schedule', '--kind', 'cron', '--', ...command, '--jitter', '1ms'], {
      cwd,
      env: { CRYPTODL_STATE_DIR: '' },
    });
    expect(stdout).toMatch(/^CRON_TZ=UTC$/m);
    expect(lineOf(stdout)).toMatch(/^5 8 \* \* \* /);
    expect(lineOf(stdout).match(/--jitter/g)).toHaveLength(1);
    const { stdout: said, stderr } = await shell('env', ['-i', 'sh', '-c', asCronRuns(lineOf(stdout))], {
      cwd: '/',
    });
    expect([said, stderr]).toEqual(['', '']);
    expect(filesBelow(join(cwd, 'data/binance'), '.parquet')).toEqual([
      'um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet',
    ]);
    expect(filesBelow(cwd)).toContain('$log%.jsonl');
    // A new line would be another command to cron.
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(lineOf(stdout));
  });

  it('variables of this environment are in a warning, until the file of the environment is there', async () => {
    const { stdout, stderr } = await cryptodlOk(
      argv`schedule --kind cron -- vision --days 7 --state-dir state`,
      {
        cwd: scratch,
        env: {
          HOME: scratch,
          CRYPTODL_SYMBOLS: 'BTCUSDT',
          HTTPS_PROXY: 'http://127.0.0.1:3128',
        },
      },
    );
    expect(lineOf(stdout)).toContain(' vision --days 7 --state-dir state --quiet --jitter 10m');
    expect(stderr).toContain(
      'warning: CRYPTODL_SYMBOLS, HTTPS_PROXY: set in this environment but not in that',
    );
  });

  it('has no fixed time from the environment, and keeps dates like yesterday as words', async () => {
    const asked = argv`schedule --kind cron -- vision --symbols BTCUSDT --state-dir state --to yesterday`;
    const env = { CRYPTODL_NOW: '2026-11-21T12:00:00Z', HOME: scratch };
    const { stdout, stderr } = await cryptodlOk(asked, { cwd: scratch, env });
    expect(lineOf(stdout)).not.toContain('2026');
    expect(lineOf(stdout)).toContain(' --to yesterday ');
    expect(stderr).toBe('');
  });

  it.each([
    [['--at', '23:40'], '40 23 * * *', '*-*-* 23:40:00 UTC'],
    [['--every', '6h'], '5 2,8,14,20 * * *', '*-*-* 02,08,14,20:05:00 UTC'],
    [['--every', '1h', '--at', '00:07'], '7 * * * *', '*-*-* *:07:00 UTC'],
  ])('%j', async (flags, fields, calendar) => {
    const { stdout } = await cryptodlOk(['schedule', ...flags, '--', 'vision'], { cwd: scratch });
    expect(lineOf(stdout).startsWith(`${fields} cd `)).toBe(true);
    expect(stdout).toContain(`\nOnCalendar=${calendar}\n`);
  });
});

describe('more than one machine', () => {
  it('keeps the address of a lake in a bucket', async () => {
    const asked = ['schedule', '--', 'vision', '--days', '7', '--out', 's3://lake/data'];
    const { stdout } = await cryptodlOk(asked, { cwd });
    expect(lineOf(stdout)).toContain(' --out s3://lake/data ');
    const { stdout: retried } = await cryptodlOk(['schedule', '--', 'verify', '--out=s3://lake/data'], {
      cwd,
    });
    expect(lineOf(retried)).toContain(' --out=s3://lake/data ');
  });

  it('leaves a worker all lakes of its jobs, and no password', async () => {
    const asked = ['schedule', '--', 'worker', '--drain'];
    const env = { HOME: scratch, CRYPTODL_REDIS: 'redis://:hunter2@queue' };
    const { stdout, stderr } = await cryptodlOk(asked, { cwd, env });
    expect(lineOf(stdout)).not.toContain('--out');
    expect(stdout + stderr).not.toContain('hunter2');
    expect(stderr).toContain('CRYPTODL_REDIS');
  });

  it('enqueue: the printed line adds the jobs of the last days, outside of this shell', async () => {
    const words = argv`enqueue vision -s BTCUSDT,ETHUSDT -d 3 ${NOW} --redis redis://queue`;
    const asked = ['schedule', '--', ...words, '--out', 's3://lake/data', '--archive-url', scene.archive.url];
    const { stdout } = await cryptodlOk(asked, { cwd });
    const script = `${asCronRuns(lineOf(stdout))} --dry-run`;
    const { stdout: planned } = await shell('env', ['-i', 'sh', '-c', script], { cwd: '/' });
    expect(planned).toBe('2 jobs for 2 series\n');
  });
});

describe('a proxy with a password', () => {
  const proxy = 'http://user:hunter2@127.0.0.1:3128';
  const file = join(scratch, '.config/cryptodl/environment');

  it.each([[['--proxy', proxy]], [[`--proxy=${proxy}`]]])('is refused as the flag %j', async (flags) => {
    const { code, stdout, stderr } = await cryptodl(['schedule', '--', ...command, ...flags], { cwd });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('--proxy has a password, which others can read in a crontab');
    expect(stderr).not.toContain('hunter2');
  });

  it('of the environment is read from a file, and is in no output', async () => {
    const env = { HOME: scratch, CRYPTODL_PROXY: proxy };
    const { stdout, stderr } = await cryptodlOk(['schedule', '--', ...command], { cwd, env });
    expect(stdout + stderr).not.toContain('hunter2');
    expect(stdout).not.toContain('--proxy');
    expect(stderr).toContain(`add lines like CRYPTODL_PROXY='http://user:password@host:port' to ${file} `);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `CRYPTODL_PROXY='${proxy}'\n`, { mode: 0o600 });
    const again = await cryptodlOk(['schedule', '--', ...command], { cwd, env });
    expect(again.stderr).toBe('');
    expect(unitOf(again.stdout, 'service')).toContain(`\nEnvironmentFile=${file}\n`);
    const script = `${asCronRuns(lineOf(again.stdout))} --print-options`;
    const { stdout: said } = await shell('env', ['-i', 'sh', '-c', script], { cwd: '/' });
    expect(said).toMatch(/^proxy +http:\/\/user:\*\*\*@127\.0\.0\.1:3128 {2}\(environment\)$/m);
  });

  it('of a config file stays there', async () => {
    writeFileSync(join(scratch, 'proxy.yaml'), `proxy: ${proxy}\n`);
    const asked = argv`schedule -- vision --days 7 --state-dir state --config proxy.yaml`;
    const { stdout, stderr } = await cryptodlOk(asked, { cwd: scratch });
    expect(lineOf(stdout)).toContain('--config proxy.yaml');
    expect(stdout + stderr).not.toContain('hunter2');
    expect(stderr).toBe('');
    expect(stdout).not.toContain('EnvironmentFile');
  });
});

describe('the units for systemd', () => {
  it('run the same command as the line for cron, in the same folder', async () => {
    const { stdout } = await cryptodlOk(['schedule', '--', ...command], { cwd });
    const script = asCronRuns(lineOf(stdout)).replace(' && ', ' && pwd && printf "%s\\n" ');
    const [folder, ...words] = (await shell('sh', ['-c', script])).stdout.trimEnd().split('\n');
    const service = unitOf(stdout, 'service');
    // systemd begins later by itself.
    expect([...asSystemdRuns(service), '--jitter', '10m']).toEqual(words);
    expect(service).not.toContain('--jitter');
    expect(words.slice(0, 3)).toEqual([process.execPath, BIN, 'vision']);
    expect(words.slice(3)).toEqual([...command.slice(1), '--quiet', '--jitter', '10m']);
    expect(/^WorkingDirectory=(.*)$/m.exec(service)?.[1]?.replaceAll('%%', '%')).toBe(folder);
    expect(folder).toBe(cwd);
    expect(service).toContain('\nSuccessExitStatus=143\n');
    expect(unitOf(stdout, 'timer')).toMatch(/\nRandomizedDelaySec=10min\nPersistent=true\n/);
  });

  it.for(NAMES)('pass systemd-analyze verify (apt-get install systemd): %j', async (name, context) => {
    const isThere = await shell('systemd-analyze', ['--version']).catch(() => undefined);
    if (isThere === undefined) context.skip('needs systemd-analyze: apt-get install systemd');
    const stdout = await scheduled(folderNamed(name), argv`--kind systemd -- ${command} --config ${name}`);
    expect(lineOf(stdout)).toBe('');
    const place = mkdtempSync(join(scratch, 'units-'));
    const paths = ['service', 'timer'].map((ending) => {
      const path = join(place, `cryptodl-vision.${ending}`);
      writeFileSync(path, unitOf(stdout, ending));
      return path;
    });
    const { stdout: said, stderr } = await shell('systemd-analyze', ['verify', '--man=no', ...paths]);
    const ours = `${said}${stderr}`.split('\n').filter((line) => line.includes('cryptodl-vision'));
    expect(ours).toEqual([]);
    const calendar = /^OnCalendar=(.*)$/m.exec(unitOf(stdout, 'timer'))?.[1] ?? '';
    const { stdout: normal } = await shell('systemd-analyze', ['calendar', calendar]);
    expect(normal).toContain('Normalized form: *-*-* 08:05:00 UTC');
  });
});

describe('a folder and an argument', () => {
  it.each(NAMES)('reach the command through cron and systemd: %j', async (name) => {
    const folder = folderNamed(name);
    const stdout = await scheduled(folder, ['--', ...command, '--config', name]);
    const line = lineOf(stdout);
    // Some crons hand the command on as it is.
    for (const handed of [asCronRuns(line), line.replace(/^(?:\S+ ){5}/, '')]) {
      const script = handed.replace(' && ', ' && pwd && printf "%s\\n" ');
      const [where, ...words] = (await shell('sh', ['-c', script])).stdout.split('\n');
      expect([where, words[words.indexOf('--config') + 1]]).toEqual([folder, name]);
    }
    const service = unitOf(stdout, 'service');
    const words = asSystemdRuns(service);
    expect(words[words.indexOf('--config') + 1]).toBe(name);
    expect(resolve(valueIn(service, 'WorkingDirectory').replaceAll('%%', '%'))).toBe(folder);
  });
});

describe('another command', () => {
  it('run: the jobs keep their lakes, and the units have the name of the file', async () => {
    writeFileSync(join(scratch, 'daily.yaml'), 'jobs: { a: { verb: vision, symbols: BTCUSDT } }');
    const { stdout } = await cryptodlOk(['schedule', '--', 'cryptodl', 'run', 'daily.yaml'], {
      cwd: scratch,
    });
    expect(asSystemdRuns(stdout).slice(2)).toEqual(['run', 'daily.yaml', '--quiet']);
    expect(stdout).toContain('# ~/.config/systemd/user/cryptodl-daily.timer\n');
  });
});

describe('a mistake', () => {
  it.each<[string[], string]>([
    [['schedule'], 'schedule needs a command'],
    [
      ['schedule', '--', 'vision', '--dataset', 'klinse', '-s', 'BTCUSDT'],
      '--dataset: um has no dataset "klinse"',
    ],
  ])('cryptodl %j', async (words, says) => {
    const { code, stdout, stderr } = await cryptodl(words, { cwd: scratch });
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(`cryptodl: ${says}`)]);
  });

  it('standard input and line breaks are refused', async () => {
    const stdin = await cryptodl(['schedule', '--', 'vision', '--symbols', '-'], { cwd: scratch });
    expect([stdin.code, stdin.stderr]).toEqual([
      2,
      expect.stringContaining('give an array, or @FILE for a list in a file'),
    ]);
    const text = await cryptodl(['schedule', '--', 'vision', '--symbols', 'A\nB'], { cwd: scratch });
    expect([text.code, text.stdout]).toEqual([2, '']);
  });
});
