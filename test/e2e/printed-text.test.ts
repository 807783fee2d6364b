/** Names and texts from outside on a terminal and in a pipe, and passwords in addresses. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

/** A line break, a sequence that sets the title of a terminal, the C1 form of one, and a text that runs backwards. */
const NAMES = ['EVIL\nINJECTED', 'T\u009b2JUSDT', 'LEFT\u202eTFEL', 'LS\u2028X', 'A\tB', '币安人生USDT'];
const SHOWN = [
  String.raw`EVIL\nINJECTED`,
  String.raw`T\x9b2JUSDT`,
  String.raw`LEFT\u202eTFEL`,
  String.raw`LS\u2028X`,
  String.raw`A\tB`,
  '币安人生USDT',
];
const PASSWORD = 'hunter2';
const scene = useScene({
  archive: [{ from: '2026-11-19', to: '2026-11-20' }],
  change: (folder) => {
    for (const name of NAMES) {
      const own = join(folder, 'data/futures/um/daily/klines', name, '1h');
      mkdirSync(own, { recursive: true });
      writeFileSync(join(own, 'x.zip'), 'x');
    }
  },
});
const { scratch } = scene;
const NOW = ['--now', '2026-11-21T12:00:00Z'];
let place: string[];

beforeAll(() => {
  place = ['--archive-url', scene.archive.url, ...NOW];
});

describe('names that would steer a terminal', () => {
  it('are one line each of list symbols, with escapes, and names of other scripts stay as they are', async () => {
    const { stdout } = await cryptodlOk(['list', 'symbols', ...place]);
    expect(stdout.trimEnd().split('\n').sort()).toEqual(['BTCUSDT', ...SHOWN].sort());
  });

  it('are escaped in warnings and errors, also those of the command line', async () => {
    const wanted = [...'vision --symbols * --interval 1h --days 1 --out'.split(' '), join(scratch, 'a')];
    const { stderr } = await cryptodl([...wanted, ...place, ...FAST]);
    expect(stderr).not.toMatch(/[^\n\P{Cc}]|[\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
    const typed = await cryptodl(['list', 'symb\u001b[2Jols\nnext: rm']);
    expect(typed.code).toBe(2);
    expect(typed.stderr).toContain(String.raw`symb\x1b[2Jols\nnext: rm`);
    expect(typed.stderr).not.toMatch(/[^\n\P{Cc}]/u);
  });

  it('are escaped in a failure report, a log and events, whose readers may be terminals', async () => {
    const out = join(scratch, 'denied');
    scene.archive.fault = (path, _, response) => {
      if (!path.includes('2026-11-20.zip')) return false;
      response.writeHead(403).end('<Error><Code>Access\u009b2J see http://u:hunter2@h</Code></Error>');
      return true;
    };
    const wanted = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--days', '1', '--out', out];
    const told = ['--json', '--log-file', join(out, 'log')];
    const { stdout, stderr } = await cryptodl([...wanted, ...place, ...FAST, ...told]);
    scene.archive.fault = undefined;
    const [report = ''] = filesBelow(join(out, '_failures'), '.jsonl');
    for (const text of [
      stdout,
      stderr,
      readFileSync(join(out, '_failures', report), 'utf8'),
      readFileSync(join(out, 'log'), 'utf8'),
    ]) {
      expect(text).toMatch(/Access.*\\(x9b|u009b)2J see http:\/\/u:\*\*\*@h/);
      expect(text).not.toMatch(/[^\n\P{Cc}]|hunter2/u);
    }
  });
});

describe('user name and password in an address', () => {
  const withPassword = (): string => scene.archive.url.replace('://', `://user:${PASSWORD}@`);

  it.each(['archive-url', 'listing-url', 'fallback-url', 'fapi-url', 'spot-url'])(
    'are refused by --%s, are in no output, and the flag to type has none',
    async (flag) => {
      for (const value of [withPassword(), `user:${PASSWORD}@host.test`]) {
        const out = join(scratch, 'refused');
        const asked = ['vision', '--symbols', 'BTCUSDT', '--json', '--out', out, `--${flag}`, value];
        const { code, stdout, stderr } = await cryptodl(asked);
        expect(code).toBe(2);
        expect(stderr).toMatch(
          new RegExp(
            `^cryptodl: --${flag} .*is not an http\\(s\\) address without user name, password and query\\n`,
          ),
        );
        expect(stderr).toMatch(/ {2}for example https?:\/\/[\w.:]+\n/);
        expect(stdout + stderr).not.toContain(PASSWORD);
        expect(stdout + stderr).not.toContain('***');
      }
    },
  );

  it('of --proxy are in no option, suggestion, log and report, but the user name is', async () => {
    const [out, log] = [join(scratch, 'proxied'), join(scratch, 'proxied.log')];
    const proxy = ['--proxy', `http://user:${PASSWORD}@127.0.0.1:1`, '--retries', '0', '--out', out];
    const asked = [
      ...'vision --symbols BTCUSDT --interval 1h --days 1'.split(' '),
      ...place,
      ...FAST,
      ...proxy,
    ];
    const options = await cryptodl([...asked, '--print-options']);
    expect([options.code, options.stdout]).toEqual([
      0,
      expect.stringMatching(/^proxy +http:\/\/user:\*\*\*@/m),
    ]);
    const mistake = await cryptodl([...asked, '--format', 'parquett']);
    expect(mistake.code).toBe(2);
    const failed = await cryptodl(argv`${asked} --log-file ${log} --log-level trace --json`);
    expect(failed.code).not.toBe(0);
    const files = filesBelow(out).map((file) => readFileSync(join(out, file), 'utf8'));
    const texts = [options, mistake, failed].flatMap(({ stdout, stderr }) => [stdout, stderr]);
    expect([...texts, ...files, readFileSync(log, 'utf8')].join('\n')).not.toContain(PASSWORD);
  });

  it('of a failure report are refused, masked or not, and --archive-url takes their place', async () => {
    const out = join(scratch, 'retried');
    scene.archive.fault = (path, _, response) => {
      if (!path.includes('2026-11-20.zip')) return false;
      response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
      return true;
    };
    const wanted = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--days', '1', '--out', out];
    await cryptodl([...wanted, ...place, ...FAST]);
    scene.archive.fault = undefined;
    const [report = ''] = filesBelow(join(out, '_failures'), '.jsonl');
    const path = join(out, '_failures', report);
    const text = readFileSync(path, 'utf8');
    for (const secret of ['***', PASSWORD]) {
      writeFileSync(
        path,
        text.replace(scene.archive.url, scene.archive.url.replace('://', `://user:${secret}@`)),
      );
      const refused = await cryptodl(['retry', path, ...FAST]);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toContain('is not an http(s) address without user name, password and query');
      expect(refused.stderr).not.toContain(PASSWORD);
    }
    await cryptodlOk(['retry', path, ...place, ...FAST]);
  });
});
