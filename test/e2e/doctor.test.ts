/** `cryptodl doctor`: the results on a sound machine, and the message and next step of each problem. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import { cryptodl } from '../helpers/cli.js';
import { closedPort } from '../helpers/wire-server.js';
import type { CliOptions } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';
import { apiError, html403, restricted } from '../helpers/rest-venue-answers.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import type { ServedVenue } from '../helpers/rest-venue-server.js';
import type { Asked, VenueAnswer } from '../helpers/rest-venue-types.js';
import { RestVenue } from '../helpers/rest-venue.js';

const scratch = scratchFolder();
const folder = join(scratch, 'archive');
let archive: TestArchive;
let venue: RestVenue;
let served: ServedVenue;
/** Replaces answers of the REST venue. */
let disturb: ((asked: Asked) => VenueAnswer | undefined) | undefined;

beforeAll(async () => {
  mkdirSync(folder);
  publish(folder, 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip', 'a\n');
  archive = await startArchive(folder);
  venue = new RestVenue({ now: () => Date.now(), symbols: [], disturb: (asked) => disturb?.(asked) });
  served = await serveVenue(venue);
});
afterAll(() => Promise.all([archive.close(), served.close()]));
afterEach(() => {
  archive.fault = undefined;
  archive.requests.length = 0;
  disturb = undefined;
});

interface Line {
  readonly check: string;
  readonly of?: string;
  readonly status: string;
  readonly found: string;
  readonly next?: string;
  readonly figures?: Readonly<Record<string, unknown>>;
}

interface Examined {
  readonly code: number | null;
  readonly stderr: string;
  readonly lines: readonly Line[];
  /** Lines of a check, in their order. */
  readonly of: (check: string) => readonly Line[];
  readonly failed: readonly string[];
}

function places(): string[] {
  const rest = (['fapi', 'dapi', 'spot'] as const).flatMap((host) => [`--${host}-url`, served.urlOf(host)]);
  return ['--archive-url', archive.url, ...rest, '--out', join(scratch, 'lake')];
}

async function doctor(flags: readonly string[] = [], options: CliOptions = {}): Promise<Examined> {
  const result = await cryptodl(['doctor', ...places(), '--json', ...flags], options);
  const lines = result.events as unknown as Line[];
  return {
    code: result.code,
    stderr: result.stderr,
    lines,
    of: (check) => lines.filter((line) => line.check === check),
    failed: lines.filter(({ status }) => status === 'fail').map(({ check }) => check),
  };
}

function hostOf(url: string): string {
  return new URL(url).host;
}

const ORDER = [
  'versions',
  'memory',
  'files',
  'threads',
  'concurrency',
  'retries',
  'breaker',
  'pool',
  'proxy',
  'archive',
  'listing',
  'rest',
  'rest',
  'rest',
  'clock',
  'out',
  'temp',
  'state',
  'bans',
  'lock',
  'leftovers',
];

describe('without any problem', () => {
  it('every line is ok, the order is fixed, and the exit code is 0', async () => {
    const lake = join(scratch, 'well');
    mkdirSync(join(lake, '.cryptodl/tmp'), { recursive: true });
    const { code, lines, stderr, of } = await doctor(['--out', lake]);
    expect([code, lines.map(({ check }) => check)]).toEqual([0, ORDER]);
    // Disks and memory of a test machine may be slow, full or small.
    const others = lines.filter(({ check }) => !['memory', 'out', 'temp', 'state'].includes(check));
    expect(others.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(stderr).toMatch(/^\d+ ok, \d+ warn, 0 fail\n$/);
    expect(of('archive')[0]).toMatchObject({ of: hostOf(archive.url), figures: { probes: 5 } });
    expect(archive.requests.filter((path) => path.endsWith('.CHECKSUM'))).toHaveLength(5);
    expect(of('versions')[0]?.found).toMatch(/cryptodl \d.*node \d+\.\d+.*DuckDB v\d/);
    expect(of('out')[0]?.found).toMatch(/well is written at .*\/s/);
    expect(filesBelow(lake)).toEqual([]);
    expect(readdirSync(join(lake, '.cryptodl'))).toEqual(['tmp']);
  });

  it('a missing lake is not created, and hosts without TLS get no line about TLS', async () => {
    const { code, of } = await doctor();
    expect([code, of('tls'), of('dns')]).toEqual([0, [], []]);
    expect(of('out')[0]?.found).toContain('does not exist yet');
    expect(existsSync(join(scratch, 'lake'))).toBe(false);
  });

  it('prints one line per check; with --quiet none', async () => {
    const said = await cryptodl(['doctor', ...places()]);
    expect(said.stdout.trimEnd().split('\n')).toHaveLength(ORDER.length);
    expect(said.stdout).toMatch(/^ok {4}versions {2}cryptodl /);
    const quiet = await cryptodl(['doctor', ...places(), '--quiet']);
    expect([quiet.code, quiet.stdout, quiet.stderr]).toEqual([0, '', '']);
  });

  it('its REST requests count in the shared budget of this machine', async () => {
    const state = join(scratch, 'counting');
    mkdirSync(state);
    const before = venue.log.length;
    await doctor(['--state-dir', state]);
    expect(
      venue.log
        .slice(before)
        .map(({ path }) => path)
        .sort(),
    ).toEqual(['/api/v3/time', '/dapi/v1/time', '/fapi/v1/time']);
    const counts = filesBelow(state).filter((file) => /futures|spot/.test(file));
    expect(counts.length).toBeGreaterThanOrEqual(2);
  });
});

describe('hosts', () => {
  it('a 403 page of the archive is reported as a firewall', async () => {
    archive.fault = (path, _, response) => {
      if (path.includes('prefix=')) return false;
      response.writeHead(403, { 'content-type': 'text/html' }).end(html403().body);
      return true;
    };
    const { code, failed, of } = await doctor();
    expect([code, failed]).toEqual([1, ['archive']]);
    expect(of('archive')[0]).toMatchObject({
      found: expect.stringContaining('answered 403') as string,
      next: expect.stringContaining('firewall') as string,
      figures: { code: 'address-blocked' },
    });
  });

  it('a location restriction of REST is reported, with the verbs that still work', async () => {
    disturb = ({ host }) => (host === 'fapi' ? restricted() : undefined);
    const { code, failed, of } = await doctor();
    expect([code, failed]).toEqual([1, ['rest']]);
    expect(of('rest')[0]).toMatchObject({
      of: hostOf(served.urlOf('fapi')),
      found: expect.stringContaining('does not serve the location of this IP address') as string,
      next: expect.stringContaining('use cryptodl vision if the lines') as string,
    });
  });

  it.each<[string, VenueAnswer, string]>([
    ['a firewall in front of REST', html403(), 'address-blocked'],
    ['a server that is down', apiError(-1001, 'Internal error', 500), 'http-server-error'],
    [
      'a page to log in',
      { status: 200, headers: {}, body: '<html>Welcome to the hotel</html>' },
      'login page',
    ],
  ])('%s', async (_, answer, says) => {
    disturb = ({ host }) => (host === 'dapi' ? answer : undefined);
    const { code, failed, of } = await doctor();
    expect([code, failed]).toEqual([1, ['rest']]);
    expect(JSON.stringify(of('rest')[1])).toContain(says);
  });

  it('a ban announced by REST is recorded for later runs', async () => {
    const state = join(scratch, 'told');
    disturb = ({ host, at }) =>
      host === 'spot' ? apiError(-1003, `Way too much; IP banned until ${at + 3_600_000}.`, 418) : undefined;
    const { of } = await doctor(['--state-dir', state]);
    expect(of('rest')[2]).toMatchObject({ status: 'fail', figures: { code: 'banned' } });
    disturb = undefined;
    const asked = venue.log.length;
    const again = await doctor(['--state-dir', state]);
    expect([again.code, again.failed]).toEqual([1, ['rest', 'bans']]);
    expect(again.of('bans')[0]).toMatchObject({
      found: expect.stringMatching(
        /^spot 127\.0\.0\.1:\d+ until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC: /,
      ) as string,
      next: expect.stringContaining('exit code 7') as string,
    });
    expect(again.of('rest')[2]?.found).toContain('no request sent');
    expect(
      venue.log
        .slice(asked)
        .map(({ host }) => host)
        .sort(),
    ).toEqual(['dapi', 'fapi']);
  });

  it('an address below the root of an archive is a warning that names its flag', async () => {
    const { code, of } = await doctor(['--archive-url', `${archive.url}/data`, '--listing-url', archive.url]);
    expect([code, of('archive')[0]?.status]).toEqual([0, 'warn']);
    expect(of('archive')[0]?.next).toContain('check --archive-url');
  });

  it('a name that does not resolve is reported with its flag', async () => {
    const { code, failed, of } = await doctor(['--fapi-url', 'https://nosuch.invalid']);
    expect([code, failed]).toEqual([1, ['dns']]);
    expect(of('dns')[0]).toMatchObject({
      of: 'nosuch.invalid',
      next: expect.stringContaining('network') as string,
    });
    expect(of('network')).toMatchObject([
      {
        status: 'note',
        found: 'not checked, because of the problem above: tls nosuch.invalid, rest nosuch.invalid',
      },
    ]);
  });

  it('a refused connection is reported for archive and listing', async () => {
    const { code, failed, of } = await doctor(['--archive-url', 'http://127.0.0.1:9']);
    expect([code, failed]).toEqual([1, ['archive', 'listing']]);
    expect(of('archive')[0]).toMatchObject({ figures: { code: 'connect-failed' } });
  });

  it('a proxy that refuses connections is reported first, without its password', async () => {
    const { code, failed, lines, of } = await doctor(['--proxy', 'http://me:pa55@127.0.0.1:9']);
    expect([code, failed]).toEqual([1, ['proxy']]);
    expect(of('proxy')[0]).toMatchObject({
      found: 'http://me:***@127.0.0.1:9 cannot be reached (ECONNREFUSED)',
      next: expect.stringContaining('--proxy none') as string,
    });
    expect(JSON.stringify(lines)).not.toContain('pa55');
  });

  it('hosts in NO_PROXY are reached without the proxy', async () => {
    const env = { HTTP_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1' };
    const { code, of } = await doctor([], { env });
    expect([code, of('proxy')[0]?.found]).toEqual([
      0,
      'none for the addresses of this run (NO_PROXY 127.0.0.1)',
    ]);
  });
});

describe('the clock', () => {
  async function withDate(shiftMs: number, everywhere: boolean): Promise<Examined> {
    const date = (): string => new Date(Date.now() + shiftMs).toUTCString();
    archive.fault = (_, request, response) => {
      response.setHeader('date', date());
      response.sendDate = false;
      archive.serve(request, response);
      return true;
    };
    disturb = (asked) => {
      if (!everywhere) return undefined;
      const answer = venue.usual(asked);
      return { ...answer, headers: { ...answer.headers, date: date() } };
    };
    return doctor();
  }

  it('fails when it is an hour off, and names its consequences', async () => {
    const { code, failed, of } = await withDate(3_600_000, true);
    expect([code, failed]).toEqual([1, ['clock']]);
    expect(of('clock')[0]).toMatchObject({
      found: expect.stringMatching(/^(59m|60m).* behind that of 127/) as string,
      next: expect.stringContaining('"today"') as string,
    });
  });

  it('is a warning when it is some seconds off', async () => {
    const { code, of } = await withDate(-20_000, true);
    expect([code, of('clock')[0]?.status]).toEqual([0, 'warn']);
    expect(of('clock')[0]?.found).toMatch(/ ahead of that of 127/);
  });

  it('is a warning about the host when only one host differs', async () => {
    const { code, of } = await withDate(3_600_000, false);
    expect([code, of('clock')[0]?.status]).toEqual([0, 'warn']);
    expect(of('clock')[0]?.found).toContain(`but ${hostOf(archive.url)} differs`);
  });
});

describe('the lake', () => {
  it('a file in place of a parent folder fails', async () => {
    const file = join(scratch, 'file');
    writeFileSync(file, '');
    const { code, failed, of } = await doctor(['--out', join(file, 'lake')]);
    expect([code, failed.filter((check) => check === 'out')]).toEqual([1, ['out']]);
    expect(of('out')[0]).toMatchObject({ next: expect.stringContaining('another --out') as string });
  });

  it.skipIf(process.getuid?.() === 0)('a folder that is not writable fails', async () => {
    const lake = join(scratch, 'read-only');
    mkdirSync(lake, { mode: 0o555 });
    const { code, failed, of } = await doctor(['--out', lake]);
    chmodSync(lake, 0o755);
    expect([code, failed]).toEqual([1, ['out']]);
    expect(of('out')[0]?.found).toContain('EACCES');
  });

  it('a symbolic link in place of .cryptodl fails, and nothing is written through it', async () => {
    const [lake, elsewhere] = [join(scratch, 'linked'), join(scratch, 'elsewhere')];
    mkdirSync(lake);
    mkdirSync(join(elsewhere, 'tmp'), { recursive: true });
    writeFileSync(join(elsewhere, 'lock.json'), '{}');
    symlinkSync(elsewhere, join(lake, '.cryptodl'));
    const { code, failed, of } = await doctor(['--out', lake]);
    expect([code, failed]).toEqual([1, ['out', 'lock', 'leftovers']]);
    expect(of('out')[0]).toMatchObject({
      found: expect.stringContaining('.cryptodl is a symbolic link') as string,
      next: expect.stringContaining('or by a mount') as string,
    });
  });

  it('--temp-dir is checked, and no file stays in it', async () => {
    const temp = join(scratch, 'spool');
    mkdirSync(temp);
    const { of } = await doctor(['--temp-dir', temp]);
    expect(of('temp')[0]?.found).toMatch(/spool is written at/);
    expect(readdirSync(temp)).toEqual([]);
  });

  it('the holder of its lock is named', async () => {
    const own = join(scratch, 'locked/.cryptodl');
    mkdirSync(own, { recursive: true });
    const holder = {
      pid: process.pid,
      host: hostname(),
      command: 'cryptodl vision',
      startedAt: '2026-11-21T07:00:00.000Z',
      bootId: '',
      processStart: '',
      pidNamespace: '',
      nonce: 'n',
    };
    const run = async (more: object, secondsAgo = 0): Promise<Line | undefined> => {
      writeFileSync(join(own, 'lock.json'), JSON.stringify({ ...holder, ...more }));
      const at = Date.now() / 1000 - secondsAgo;
      utimesSync(join(own, 'lock.json'), at, at);
      return (await doctor(['--out', join(scratch, 'locked')])).of('lock')[0];
    };
    expect(await run({})).toMatchObject({
      status: 'warn',
      found: `a run is writing to this lake: pid ${process.pid} on ${hostname()} since 2026-11-21T07:00:00.000Z (cryptodl vision)`,
      next: expect.stringContaining('exit code 6') as string,
    });
    expect(await run({ host: 'elsewhere' })).toMatchObject({
      status: 'warn',
      next: expect.stringContaining('lock.json') as string,
    });
    const renewed = { host: 'elsewhere', heartbeatMs: 15_000 };
    expect(await run(renewed)).toMatchObject({ status: 'warn' });
    expect(await run(renewed, 61)).toMatchObject({
      status: 'ok',
      found: expect.stringContaining('the next run takes over the lock of') as string,
    });
    expect(await run({ processStart: 'another' })).toMatchObject({ status: 'ok' });
    rmSync(join(own, 'lock.json'));
  });

  it('temporary files of a killed run are counted', async () => {
    const staging = join(scratch, 'left/.cryptodl/tmp/run-1');
    mkdirSync(staging, { recursive: true });
    writeFileSync(join(staging, 'a.zip'), 'ten bytes!');
    writeFileSync(join(scratch, 'left/.cryptodl/commit-1.json'), '{}');
    const { code, of } = await doctor(['--out', join(scratch, 'left')]);
    expect([code, of('leftovers')[0]?.status]).toEqual([0, 'warn']);
    expect(of('leftovers')[0]).toMatchObject({ figures: { files: 2, bytes: 12, commits: 1 } });
    expect(existsSync(join(staging, 'a.zip'))).toBe(true);
  });

  it('a state folder that is not writable is a warning, because runs work without it', async () => {
    const file = join(scratch, 'state-file');
    writeFileSync(file, '');
    const { code, of } = await doctor(['--state-dir', file]);
    expect([code, of('state')[0]?.status]).toEqual([0, 'warn']);
    expect(of('state')[0]?.next).toContain('--state-dir');
  });
});

describe.skipIf(!HAS_OPENSSL)('TLS (needs openssl)', () => {
  it.each([
    ['of an unknown authority', { names: 'IP:127.0.0.1', days: 90 }, false, 'does not trust', '--ca-file'],
    ['that has expired', { names: 'IP:127.0.0.1', days: -1 }, true, 'was valid until 20', 'clock'],
    ['for another host', { names: 'DNS:other.test', days: 90 }, true, 'other.test', 'address'],
  ] as const)('a certificate %s fails, with the reason', async (_, names, trusts, says, next) => {
    const certificate = makeCertificate(scratch, 'strange', names);
    const secure = await startArchive(folder, { tls: certificate });
    const trust = trusts ? ['--ca-file', certificate.file] : [];
    const { code, failed, of } = await doctor(['--archive-url', secure.url, ...trust]);
    await secure.close();
    expect([code, failed]).toEqual([1, ['tls']]);
    expect(of('tls')[0]?.found).toContain(says);
    expect(of('tls')[0]?.next).toContain(next);
  });

  it.each([
    [90, 'ok', 89],
    [3, 'warn', 2],
  ])('a valid certificate of %i days is %s', async (days, status, left) => {
    const certificate = makeCertificate(scratch, 'good', { names: 'IP:127.0.0.1', days });
    const secure = await startArchive(folder, { tls: certificate });
    const { code, of } = await doctor(['--archive-url', secure.url, '--ca-file', certificate.file]);
    await secure.close();
    expect([code, of('tls')]).toMatchObject([0, [{ status, figures: { days: left } }]]);
  });

  it.each([
    ['with the right password', 'me:pa55', 0, 'ok', 'valid for another 89 days'],
    ['with a wrong password', 'nobody:x', 1, 'fail', 'the proxy answered 407'],
  ])('a certificate is checked through a proxy %s', async (_, who, code, status, says) => {
    const certificate = makeCertificate(scratch, 'proxied', { names: 'IP:127.0.0.1', days: 90 });
    const secure = await startArchive(folder, { tls: certificate });
    const proxy = await tunnelling('me:pa55');
    const { port } = new URL(proxy.url);
    const trust = ['--ca-file', certificate.file];
    const env = { HTTPS_PROXY: `http://${who}@127.0.0.1:${port}` };
    const found = await doctor(['--archive-url', secure.url, ...trust], { env });
    await Promise.all([secure.close(), proxy.close()]);
    expect([found.code, found.of('tls')]).toMatchObject([code, [{ status }]]);
    expect(found.of('tls')[0]?.found).toContain(says);
    expect(found.of('proxy')[0]?.found).toContain(':***@127.0.0.1');
    if (code === 1) expect(found.of('tls')[0]?.next).toContain('http://user:password@host:port');
  });

  it('an https address of a server without TLS is reported', async () => {
    const { code, of } = await doctor(['--archive-url', archive.url.replace('http:', 'https:')]);
    expect([code, of('tls')[0]?.found]).toEqual([1, expect.stringContaining('does not speak TLS')]);
  });
});

/** A proxy for CONNECT only, which requires these credentials. */
async function tunnelling(wants: string): Promise<{ url: string; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.on('connect', ({ url = '', headers }, socket: Socket) => {
    socket.on('error', () => undefined);
    if (headers['proxy-authorization'] !== `Basic ${Buffer.from(wants).toString('base64')}`) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n');
      return;
    }
    const target = connect(Number(url.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(target).pipe(socket);
    });
    sockets.add(target);
    target.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('mistakes', () => {
  it('a --ca-file that cannot be read is a usage error', async () => {
    const { code, stderr } = await doctor(['--ca-file', join(scratch, 'none.pem')]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--ca-file: cannot read')]);
  });

  it('the verb "diagnose" suggests doctor', async () => {
    const { code, stderr } = await cryptodl(['diagnose']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('cryptodl doctor')]);
  });
});

describe('the server of --redis', () => {
  it.each([
    ['without a group', [], 'fail', ''],
    [
      'for a group',
      ['--egress-group', 'office'],
      'warn',
      '; each run of the group office takes its share of the limits until it answers',
    ],
  ])('that cannot be reached: %s', async (_, flags, status, more) => {
    const address = `127.0.0.1:${await closedPort()}`;
    const { of, stderr, lines } = await doctor(['--redis', `redis://:pa55-w0rd@${address}`, ...flags]);
    expect(of('redis')).toMatchObject([
      {
        status,
        found: `Redis at redis://${address}: the connection is refused${more}`,
        next: 'start the server, or check host and port of --redis',
        figures: { code: 'redis-unreachable' },
      },
    ]);
    expect(stderr + JSON.stringify(lines)).not.toContain('pa55-w0rd');
  });
});
