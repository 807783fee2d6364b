/** `cryptodl doctor`: the results on a sound machine, and the message and next step of each problem. */
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
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

const ORDER = 'versions archive listing rest rest rest clock out state lock bans'.split(' ');

function containing(text: string): string {
  return expect.stringContaining(text) as string;
}

describe('without any problem', () => {
  it('each line is ok, the order is fixed, the exit code is 0, and the file tree stays the same', async () => {
    const lake = join(scratch, 'well');
    mkdirSync(join(lake, '.cryptodl/tmp'), { recursive: true });
    const asked = venue.log.length;
    const { code, lines, stderr, of } = await doctor(['--out', lake]);
    expect([code, lines.map(({ check }) => check)]).toEqual([0, ORDER]);
    // Disks of a test machine may be full.
    const others = lines.filter(({ check }) => !['out', 'state'].includes(check));
    expect(others.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(stderr).toMatch(/^\d+ ok, \d+ warn, 0 fail\n$/);
    expect(of('archive')[0]).toMatchObject({
      of: hostOf(archive.url),
      found: expect.stringMatching(/^first byte \d+ ms, whole \d+ ms$/) as string,
    });
    expect(archive.requests.filter((path) => path.endsWith('.CHECKSUM'))).toHaveLength(1);
    const paths = venue.log.slice(asked).map(({ path }) => path);
    expect(paths.sort()).toEqual(['/api/v3/time', '/dapi/v1/time', '/fapi/v1/time']);
    expect(of('versions')[0]?.found).toMatch(/cryptodl \d.*node \d+\.\d+.*DuckDB v\d/);
    expect(of('out')[0]?.found).toMatch(/well can be written; .* free/);
    expect(filesBelow(lake)).toEqual([]);
    expect(readdirSync(join(lake, '.cryptodl'))).toEqual(['tmp']);
  });

  it('prints one line per check; with --quiet none', async () => {
    const said = await cryptodl(['doctor', ...places()]);
    expect(said.stdout.trimEnd().split('\n')).toHaveLength(ORDER.length);
    expect(said.stdout).toMatch(/^ok +versions +cryptodl /);
    const quiet = await cryptodl(['doctor', ...places(), '--quiet']);
    expect([quiet.code, quiet.stdout, quiet.stderr]).toEqual([0, '', '']);
  });

  it('its REST requests count in the shared budget of this machine', async () => {
    const state = join(scratch, 'counting');
    mkdirSync(state);
    await doctor(['--state-dir', state]);
    const counts = filesBelow(state).filter((file) => /futures|spot/.test(file));
    expect(counts.length).toBeGreaterThanOrEqual(2);
  });
});

describe('hosts', () => {
  it.each<[string, VenueAnswer, number, string, string]>([
    ['refuses the location', restricted(), 0, 'location-restricted', 'use cryptodl vision'],
    ['refuses the address', html403(), 0, 'address-blocked', 'use cryptodl vision'],
    ['is down', apiError(-1001, 'Internal error', 500), 1, 'http-server-error', '--dapi-url'],
    [
      'is hidden by a page to log in',
      { status: 200, headers: {}, body: '<html>Welcome to the hotel</html>' },
      1,
      'answer-malformed',
      'login page',
    ],
  ])('REST that %s', async (_, answer, exit, code, next) => {
    disturb = ({ host }) => (host === 'dapi' ? answer : undefined);
    const found = await doctor();
    expect([found.code, found.failed]).toEqual([exit, exit === 0 ? [] : ['rest']]);
    expect(found.of('rest')[1]).toMatchObject({
      of: hostOf(served.urlOf('dapi')),
      status: exit === 0 ? 'warn' : 'fail',
      next: containing(next),
      found: containing(`(${code})`),
    });
    // Each printed line begins with the host.
    expect(found.of('rest')[1]?.found).not.toContain(hostOf(served.urlOf('dapi')));
  });

  it('a ban announced by REST is recorded for later runs, and ends requests', async () => {
    const state = join(scratch, 'told');
    disturb = ({ host, at }) =>
      host === 'spot' ? apiError(-1003, `Way too much; IP banned until ${at + 3_600_000}.`, 418) : undefined;
    const { of } = await doctor(['--state-dir', state]);
    expect(of('rest')[2]).toMatchObject({ status: 'fail' });
    disturb = undefined;
    const asked = venue.log.length;
    const again = await doctor(['--state-dir', state]);
    expect([again.code, again.failed]).toEqual([1, ['rest', 'bans']]);
    expect(again.of('bans')[0]).toMatchObject({
      found: expect.stringMatching(
        /^spot 127\.0\.0\.1:\d+ until 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC: /,
      ) as string,
      next: containing('exit code 7'),
    });
    const hosts = venue.log.slice(asked).map(({ host }) => host);
    expect(hosts.sort()).toEqual(['dapi', 'fapi']);
  });

  it.each<[string, () => readonly string[], string, object]>([
    [
      'an address below the root of an archive',
      () => ['--archive-url', `${archive.url}/data`, '--listing-url', archive.url],
      'archive',
      { next: containing('check --archive-url') },
    ],
    [
      'a name that does not resolve',
      () => ['--fapi-url', 'https://nosuch.invalid'],
      'rest',
      { of: 'nosuch.invalid', next: containing('--fapi-url') },
    ],
  ])('%s fails, with the flag of the host', async (_, flags, check, line) => {
    const { code, lines, failed } = await doctor(flags());
    expect([code, failed]).toEqual([1, [check]]);
    expect(lines.find(({ status }) => status === 'fail')).toMatchObject(line);
  });

  it('a proxy that refuses connections is named without its password; hosts in NO_PROXY need none', async () => {
    const { code, lines, of } = await doctor(['--proxy', 'http://me:pa55@127.0.0.1:9']);
    expect([code, of('archive')[0]?.found]).toEqual([
      1,
      containing('the proxy 127.0.0.1:9 cannot be reached'),
    ]);
    expect(JSON.stringify(lines)).not.toContain('pa55');
    const env = { HTTP_PROXY: 'http://127.0.0.1:9', NO_PROXY: '127.0.0.1' };
    expect((await doctor([], { env })).code).toBe(0);
  });

  it('hosts that do not answer are checked at the same time, whatever the limits of sockets', async () => {
    disturb = (asked) => ({ ...venue.usual(asked), cut: 'stall' });
    const limits = ['--total-timeout', '500ms', '--pool-limit', '1', '--pool-limit-per-host', '1'];
    const { of } = await doctor(limits);
    expect(of('rest').map(({ found }) => found)).toEqual(Array(3).fill(containing('(total-timeout)')));
  });

  it.each([
    ['without a group', [], 'fail'],
    ['for a group', ['--egress-group', 'office'], 'warn'],
  ])('a Redis server that cannot be reached: %s', async (_, flags, status) => {
    const address = `127.0.0.1:${await closedPort()}`;
    const { of, stderr, lines } = await doctor(['--redis', `redis://:pa55-w0rd@${address}`, ...flags]);
    expect(of('redis')).toMatchObject([
      { status, found: `Redis at redis://${address}: connect ECONNREFUSED ${address}` },
    ]);
    expect(stderr + JSON.stringify(lines)).not.toContain('pa55-w0rd');
  });
});

describe('the clock', () => {
  it.each<[string, number, boolean, string, RegExp]>([
    ['an hour behind', 3_600_000, true, 'fail', /^(59m|60m).* behind that of 127/],
    ['some seconds ahead', -20_000, true, 'warn', / ahead of that of 127/],
    ['the clock of some hosts', 3_600_000, false, 'ok', /^within 1s/],
  ])('%s', async (_, shiftMs, everywhere, status, found) => {
    const date = (): string => new Date(Date.now() + shiftMs).toUTCString();
    archive.fault = (_path, request, response) => {
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
    const { code, of } = await doctor();
    expect([code, of('clock')[0]?.status]).toEqual([status === 'fail' ? 1 : 0, status]);
    expect(of('clock')[0]?.found).toMatch(found);
  });
});

describe('the lake', () => {
  it('a file in place of a parent folder fails', async () => {
    const file = join(scratch, 'file');
    writeFileSync(file, '');
    const { code, failed, of } = await doctor(['--out', join(file, 'lake')]);
    expect([code, failed.filter((check) => check === 'out')]).toEqual([1, ['out']]);
    expect(of('out')[0]).toMatchObject({ next: expect.stringContaining('--out') as string });
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
    expect([code, failed]).toEqual([1, ['out', 'lock']]);
    expect(of('out')[0]).toMatchObject({
      found: expect.stringContaining('.cryptodl is a symbolic link') as string,
      next: expect.stringContaining('or by a mount') as string,
    });
  });

  it('--temp-dir is checked, and no file stays in it', async () => {
    const temp = join(scratch, 'spool');
    mkdirSync(temp);
    const { of } = await doctor(['--temp-dir', temp]);
    expect(of('temp')[0]?.found).toMatch(/spool can be written/);
    expect(readdirSync(temp)).toEqual([]);
  });

  it('a state folder that is not writable is a warning, because runs work without it', async () => {
    const file = join(scratch, 'state-file');
    writeFileSync(file, '');
    const { code, of } = await doctor(['--state-dir', file]);
    expect([code, of('state')[0]?.status]).toEqual([0, 'warn']);
    expect(of('state')[0]?.next).toContain('--state-dir');
  });
});
