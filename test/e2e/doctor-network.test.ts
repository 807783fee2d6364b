/** `cryptodl doctor`: it leaves no folder behind, tells one cause once, and judges only hosts that runs here use. */
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { publish } from '../helpers/published.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import type { ServedVenue } from '../helpers/rest-venue-server.js';
import { RestVenue } from '../helpers/rest-venue.js';

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
const proxy = createServer();
let archive: TestArchive;
let served: ServedVenue;

beforeAll(async () => {
  mkdirSync(folder);
  publish(folder, 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip', 'a\n');
  archive = await startArchive(folder);
  served = await serveVenue(new RestVenue({ now: () => Date.now(), symbols: [] }));
  // Refuses each connection to a host behind it.
  proxy.on('connect', (_, socket: Socket) => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
});
afterAll(() => Promise.all([archive.close(), served.close(), new Promise((done) => proxy.close(done))]));

describe('the file tree', () => {
  it.each([
    ['without a lake', 'none/lake', false],
    ['with a lake that is an empty folder', 'lake', true],
  ])('is the same as before, %s', async (_, out, exists) => {
    const home = join(scratch, `home of ${out.length}`);
    mkdirSync(join(home, 'tmp'), { recursive: true });
    if (exists) mkdirSync(join(home, out));
    const before = readdirSync(home, { recursive: true, encoding: 'utf8' }).sort((a, b) =>
      a.localeCompare(b),
    );
    const rest = (['fapi', 'dapi', 'spot'] as const).flatMap((host) => [`--${host}-url`, served.urlOf(host)]);
    const { code } = await cryptodl(
      [
        'doctor',
        '--archive-url',
        archive.url,
        ...rest,
        '--state-dir',
        join(home, 'state'),
        '--out',
        join(home, out),
      ],
      { env: { HOME: home, TMPDIR: join(home, 'tmp') } },
    );
    expect([
      code,
      readdirSync(home, { recursive: true, encoding: 'utf8' }).sort((a, b) => a.localeCompare(b)),
    ]).toEqual([0, before]);
  });
});

describe('without any network', () => {
  it('one line fails, and one line names the checks that depend on it', async () => {
    const urls = ['archive', 'listing', 'fapi', 'dapi', 'spot'].flatMap((host) => [
      `--${host}-url`,
      `https://${host}.invalid`,
    ]);
    const { code, stdout, stderr } = await cryptodl(['doctor', ...urls, '--out', join(scratch, 'offline')]);
    const lines = stdout.split('\n').filter((line) => /^(fail|note)|clock/.test(line));
    expect([code, lines.length]).toEqual([1, 2]);
    expect(lines[0]).toMatch(
      /^fail {2}network {2}no network: none of 5 hosts can be reached; .*; next: connect /,
    );
    expect(lines[1]).toBe(
      'note  network  not checked, because of the problem above: dns, tls, archive, listing, rest, clock',
    );
    expect(stderr).toMatch(/ 1 fail, 1 note\n$/);
  });
});

describe('one cause', () => {
  const ALL = ['archive', 'listing', 'fapi', 'dapi', 'spot'];
  const rest = (): string[] =>
    (['fapi', 'dapi', 'spot'] as const).flatMap((host) => [`--${host}-url`, served.urlOf(host)]);

  async function told(flags: readonly string[]): Promise<readonly (readonly [unknown, unknown, unknown])[]> {
    const { events } = await cryptodl(['doctor', '--json', ...flags, '--out', join(scratch, 'one cause')]);
    return events.map(({ status, check, of }) => [status, check, of] as const);
  }

  it('is told once for a name without an address, also with a port, and the clock is still checked', async () => {
    const flags = ['--archive-url', 'http://archive.invalid:8080', '--listing-url', archive.url, ...rest()];
    const lines = await told(flags);
    expect(lines.filter(([status]) => status === 'fail')).toEqual([['fail', 'dns', 'archive.invalid']]);
    expect(lines).toContainEqual(['note', 'network', undefined]);
    expect(lines.map(([, check]) => check)).not.toContain('archive');
    expect(lines.find(([, check]) => check === 'clock')?.[0]).toBe('ok');
  });

  it('is a proxy that does not answer: no other line fails, and the clock is not checked', async () => {
    const hosts = ALL.flatMap((host) => [`--${host}-url`, `http://${host}.invalid`]);
    const lines = await told([...hosts, '--proxy', 'http://127.0.0.1:1']);
    expect(lines.filter(([status]) => status === 'fail')).toEqual([['fail', 'proxy', undefined]]);
    expect(lines.map(([, check]) => check)).not.toContain('clock');
    expect(lines).toContainEqual(['note', 'network', undefined]);
  });

  it('is not assumed for one machine that refuses connections', async () => {
    const lines = await told(ALL.flatMap((host) => [`--${host}-url`, 'http://127.0.0.1:1']));
    const failed = lines.filter(([status]) => status === 'fail').map(([, check]) => check);
    expect(failed).toEqual(['archive', 'listing', 'rest', 'rest', 'rest']);
  });
});

describe('hosts behind a proxy that refuses all REST hosts', () => {
  interface Judged {
    readonly code: number | null;
    readonly lines: readonly (readonly [unknown, unknown, unknown])[];
    readonly found: string;
  }

  async function judged(
    lake: string,
    more: readonly string[] = [],
    places: readonly string[] = ['--archive-url', archive.url],
  ): Promise<Judged> {
    const { port } = proxy.address() as AddressInfo;
    const { code, events, stdout } = await cryptodl(['doctor', '--json', ...places, '--out', lake, ...more], {
      env: { HTTPS_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: '127.0.0.1' },
    });
    const lines = events
      .filter(({ status, check }) => ['tls', 'rest'].includes(String(check)) && status !== 'ok')
      .map(({ status, check, of }) => [status, check, of] as const);
    return { code, lines, found: stdout };
  }

  function lakeWith(name: string, path: string, key: string): string {
    const lake = join(scratch, name);
    const manifest = join(lake, '_manifests/binance', path);
    mkdirSync(dirname(manifest), { recursive: true });
    writeFileSync(manifest, `${JSON.stringify({ v: 1, kind: 'absent', key })}\n`);
    return lake;
  }

  const unused = (host: string): readonly string[] => ['note', 'tls', `${host}.binance.com`];

  it('are notes for a lake without rows of REST, and do not fail the verb', async () => {
    const { code, lines, found } = await judged(join(scratch, 'missing'));
    expect([code, lines]).toEqual([0, [unused('fapi'), unused('dapi'), unused('api')]]);
    expect(found).toContain('neither this lake nor an option uses this host');
    const key = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip';
    const ofArchive = lakeWith('of archive', 'um/klines/interval=1h/symbol=BTCUSDT.jsonl', key);
    expect((await judged(ofArchive)).code).toBe(0);
  });

  it('fail for the market from whose REST the lake has rows', async () => {
    const lake = lakeWith(
      'of REST',
      'cm/funding-rates/symbol=BTCUSD_PERP.jsonl',
      'rest/cm/funding-rates/BTCUSD_PERP/2026-11',
    );
    const { code, lines } = await judged(lake);
    expect([code, lines]).toEqual([1, [unused('fapi'), ['fail', 'tls', 'dapi.binance.com'], unused('api')]]);
  });

  it('include the archive: a note for a lake of REST alone, a failure for others and for an option', async () => {
    const HOST = 'data.binance.vision';
    const lake = lakeWith('of REST alone', 'um/basis/symbol=BTCUSDT.jsonl', 'rest/um/basis/BTCUSDT/2026-11');
    const statusOf = async (out: string, places: readonly string[] = []): Promise<unknown> => {
      const { lines } = await judged(out, [], places);
      return lines.find(([, check, of]) => check === 'tls' && of === HOST)?.[0];
    };
    expect(await statusOf(lake)).toBe('note');
    expect(await statusOf(lake, ['--archive-url', `https://${HOST}`])).toBe('fail');
    expect(await statusOf(join(scratch, 'missing'))).toBe('fail');
    const key = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip';
    const both = lakeWith('of REST alone', 'um/klines/interval=1h/symbol=BTCUSDT.jsonl', key);
    expect(await statusOf(both)).toBe('fail');
  });

  it('fail if an option names the host', async () => {
    const { code, lines } = await judged(join(scratch, 'missing'), ['--spot-url', 'https://api.binance.com']);
    expect([code, lines]).toEqual([1, [unused('fapi'), unused('dapi'), ['fail', 'tls', 'api.binance.com']]]);
  });
});
