/** SOCKS5 proxies: `--proxy`, `ALL_PROXY`, user and password, and the side that resolves names. */
import { beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import type { Certificate } from '../helpers/certificates.js';
import { argv, cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';
import { startSocks } from '../helpers/socks.js';

const scene = useScene({
  archive: [{ from: '2026-11-19', to: '2026-11-20' }],
  venue: { symbols: [{ symbol: 'BTCUSDT', host: 'fapi' }] },
  flags: '--json --interval 1h --symbols BTCUSDT --days 2',
});
const METRICS = '--json --dataset openInterestHist --symbols BTCUSDT --days 2';
const LOGIN = 'anna:pa55:w0rd%';
const WRITTEN_LOGIN = 'anna:pa55%3Aw0rd%25';

/** The address of a local server under a name that only the proxy knows. */
function named(name: string, url: string): string {
  return `http://${name}:${new URL(url).port}`;
}

describe('a SOCKS5 proxy', () => {
  it.each([
    ['socks5h in --proxy', (label: string) => ['--proxy', `socks5h://${label}`], () => ({})],
    ['socks5h in ALL_PROXY', () => [], (label: string) => ({ ALL_PROXY: `socks5h://${label}` })],
    ['socks in all_proxy', () => [], (label: string) => ({ all_proxy: `socks://${label}/` })],
    [
      'socks5h in HTTP_PROXY',
      () => [],
      (label: string) => ({ HTTP_PROXY: `socks5h://${label}`, HTTPS_PROXY: 'h:1', ALL_PROXY: 'x' }),
    ],
  ])('%s gets the names of all hosts', async (_, flags, env) => {
    const socks = await startSocks();
    const run = await scene.vision(flags(socks.label), {
      env: env(socks.label),
      url: named('archive.test', scene.archive.url),
    });
    expect([run.code, run.summary['outcomes'], run.stderr]).toEqual([
      0,
      expect.objectContaining({ ok: 2, failed: 0 }),
      expect.not.stringContaining('Warning'),
    ]);
    expect(new Set(socks.asked)).toEqual(new Set(['name archive.test']));
  });

  it('carries the checks of doctor', async () => {
    const socks = await startSocks();
    const url = named('archive.test', scene.archive.url);
    const line = argv`doctor --json --proxy ${`socks5h://${socks.label}`} --archive-url ${url} --out ${scene.newFolder()}`;
    const { events } = await cryptodl(line);
    expect(events).toContainEqual(expect.objectContaining({ check: 'archive', status: 'ok' }));
    expect(socks.asked).toContain('name archive.test');
  });

  it('carries the requests of metrics, with user and password', async () => {
    const socks = await startSocks({ login: LOGIN });
    const run = await scene.metrics(['--proxy', `socks5h://${WRITTEN_LOGIN}@${socks.label}`], {
      sceneFlags: METRICS,
    });
    expect([run.code, run.summary['outcomes']]).toEqual([0, expect.objectContaining({ ok: 2, failed: 0 })]);
    expect(new Set(socks.logins)).toEqual(new Set([LOGIN]));
    // An address stays an address.
    expect(new Set(socks.asked)).toEqual(new Set(['1 7f000001']));
    expect(run.stdout + run.stderr).not.toContain('pa55');
  });
});

describe.skipIf(!HAS_OPENSSL)('TLS through a SOCKS5 proxy (needs openssl)', () => {
  let certificate: Certificate;
  beforeAll(() => {
    certificate = makeCertificate(scene.scratch, 'archive', { names: 'DNS:archive.test', days: 2 });
  });

  it.each([[[]], [['--http2']]])('checks the certificate for the name: %j', async (flags) => {
    const archive = await startArchive(scene.folder, { tls: certificate });
    const socks = await startSocks();
    const url = named('archive.test', archive.url).replace('http:', 'https:');
    const through = ['--proxy', `socks5h://${socks.label}`, ...flags];
    const run = await scene.vision([...through, '--ca-file', certificate.file], { url });
    expect([run.code, new Set(socks.asked)]).toEqual([0, new Set(['name archive.test'])]);
    const other = await scene.vision([...through, '--max-wait', '1s'], { url });
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('certificate')]);
    await archive.close();
  });
});

describe('the address of a proxy', () => {
  const WRONG = [
    'http://h:1/path',
    'http://h:1/?a',
    'http://h:1/#a',
    'http://h:99999',
    'http://us%er:pa55@h:1',
    'http://us%ffer:pa55@h:1',
    `socks5://${'u'.repeat(256)}:pa55@h:1`,
    'socks4://h:1',
    'socks5:h',
    'h:99999',
    'ftp://h',
  ];

  it.each(WRONG)('%s is refused in one line, where it is given', async (value) => {
    const flag = await cryptodl(['vision', '-s', 'BTCUSDT', '--proxy', value]);
    const variable = await cryptodl(['vision', '-s', 'BTCUSDT'], { env: { ALL_PROXY: value } });
    const given = [flag, variable].map(({ code, stderr }) => [code, stderr.split('\n')[0]]);
    expect(given).toEqual([
      [2, 'cryptodl: --proxy is not the address of a proxy'],
      [2, 'cryptodl: ALL_PROXY is not the address of a proxy'],
    ]);
    expect(flag.stderr + variable.stderr).not.toContain('pa55');
  });
});
