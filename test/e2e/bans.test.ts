/** N24 to N26: a host that says for how long it wants to be left alone is left alone, by the next run too. */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import type { CliResult } from '../helpers/cli.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { MISSING } from '../helpers/local-faults.js';

const HOUR_S = 3600;
const scratch = scratchFolder();
let archive: TestArchive;

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-11-18',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());
afterEach(() => {
  archive.fault = undefined;
  archive.requests.length = 0;
});

function run(name: string, ...flags: string[]): Promise<CliResult> {
  const what = ['--interval', '1h', '--symbols', 'BTCUSDT', '--days', '3', '--now', '2026-11-21T12:00:00Z'];
  const where = ['--archive-url', archive.url, '--out', join(scratch, name, 'data')];
  const state = ['--state-dir', join(scratch, name, 'state')];
  return cryptodl(['vision', ...what, ...where, ...state, ...FAST, ...flags]);
}

/** The next object is refused with this. */
function refuse(answer: (response: ServerResponse) => void): void {
  archive.fault = (path, _, response) => {
    if (!path.endsWith('.zip')) return false;
    answer(response);
    return true;
  };
}

describe('a ban', () => {
  it.each<[string, (response: ServerResponse) => void]>([
    [
      'N26 418 with Retry-After',
      (response) => response.writeHead(418, { 'retry-after': String(HOUR_S) }).end(),
    ],
    [
      'N24 429 with Retry-After',
      (response) => response.writeHead(429, { 'retry-after': String(HOUR_S) }).end(),
    ],
    [
      'N25 429 with an HTTP-date',
      (response) =>
        response.writeHead(429, { 'retry-after': new Date(Date.now() + HOUR_S * 1000).toUTCString() }).end(),
    ],
    [
      'N26 418 that says "banned until" in its body',
      (response) =>
        response.writeHead(418).end(`{"msg":"Way too much; IP banned until ${Date.now() + HOUR_S * 1000}."}`),
    ],
  ])(
    '%s beyond --max-wait ends the run with 7, and the next one is refused unasked',
    async (name, answer) => {
      refuse(answer);
      const first = await run(name);
      expect(first.code).toBe(7);
      archive.fault = undefined;
      archive.requests.length = 0;
      const second = await run(name);
      expect([second.code, archive.requests]).toEqual([7, []]);
      expect(second.stderr).toMatch(
        /^cryptodl: .*answered 4\d\d.*nothing is asked of it before 20\d\d-.* UTC\n/,
      );
      const untilMs = Date.parse(
        `${/before (20.*) UTC\n/.exec(second.stderr)?.[1]?.replace(' ', 'T') ?? ''}Z`,
      );
      expect(Math.abs(untilMs - HOUR_S * 1000 - Date.now())).toBeLessThan(5 * 60_000);
      const listed = await cryptodl([
        'list',
        'symbols',
        '--archive-url',
        archive.url,
        '--state-dir',
        join(scratch, name, 'state'),
      ]);
      expect([listed.code, archive.requests]).toEqual([7, []]);
    },
  );

  it('is of one host: another one is asked', async () => {
    refuse((response) => response.writeHead(418, { 'retry-after': String(HOUR_S) }).end());
    await run('elsewhere');
    archive.fault = undefined;
    const other = await startArchive(join(scratch, 'archive'));
    const result = await run('elsewhere', '--archive-url', other.url);
    await other.close();
    expect(result.code).toBe(0);
  });

  it('that is over is forgotten', async () => {
    refuse((response) => response.writeHead(418, { 'retry-after': String(HOUR_S) }).end());
    await run('over');
    archive.fault = undefined;
    const file = join(scratch, 'over/state/bans.json');
    const bans = JSON.parse(readFileSync(file, 'utf8')) as Record<string, { until: number }>;
    for (const ban of Object.values(bans)) ban.until = Date.now() - 1;
    writeFileSync(file, JSON.stringify(bans));
    expect((await run('over')).code).toBe(0);
  });

  const WEEK_MS = 7 * 86_400_000;
  const untilOf = (name: string): number[] =>
    Object.values(
      JSON.parse(readFileSync(join(scratch, name, 'state/bans.json'), 'utf8')) as Record<
        string,
        { until: number }
      >,
    ).map(({ until }) => Math.abs(until - WEEK_MS - Date.now()));

  it('of absurd length counts as 7 days; the message names the command that forgets it', async () => {
    refuse((response) => response.writeHead(418, { 'retry-after': '9'.repeat(20) }).end());
    const first = await run('absurd');
    expect([first.code, first.stderr]).toEqual([7, expect.stringContaining('asked to wait 168h 0m')]);
    archive.fault = undefined;
    const { host } = new URL(archive.url);
    const second = await run('absurd');
    expect(second.code).toBe(7);
    expect(second.stderr).toContain('answered 418 (it asks for a longer wait than 7 days)');
    expect(second.stderr).toContain(`cryptodl doctor --clear-bans ${host}`);
    expect(Math.max(...untilOf('absurd'))).toBeLessThan(5 * 60_000);
    archive.requests.length = 0;
    const state = ['--state-dir', join(scratch, 'absurd/state')];
    const cleared = await cryptodl(['doctor', '--clear-bans', host, ...state]);
    expect([cleared.code, cleared.stdout]).toEqual([0, `ok    bans  removed: archive ${host}\n`]);
    expect(archive.requests).toEqual([]);
    expect((await run('absurd')).code).toBe(0);
    const again = await cryptodl(['doctor', '--clear-bans', host, ...state]);
    expect([again.code, again.stdout]).toEqual([0, `ok    bans  no ban of ${host} is remembered\n`]);
  });

  it('that is remembered until the year 10000 is shortened to 7 days with a warning, once', async () => {
    const { host } = new URL(archive.url);
    const file = join(scratch, 'year-10000/state/bans.json');
    mkdirSync(join(scratch, 'year-10000/state'), { recursive: true });
    writeFileSync(file, JSON.stringify({ [`archive ${host}`]: { until: 1e300, why: 'said by the test' } }));
    const first = await run('year-10000');
    expect(first.code).toBe(7);
    expect(first.stderr).toContain(`warning: the remembered ban of archive ${host} is shortened to 7 days`);
    expect(Math.max(...untilOf('year-10000'))).toBeLessThan(5 * 60_000);
    const second = await run('year-10000');
    expect(second.code).toBe(7);
    expect(second.stderr).not.toContain('shortened');
  });

  it('is forgotten in all buckets of its host, and of no other host', async () => {
    const folder = join(scratch, 'buckets/state');
    mkdirSync(folder, { recursive: true });
    const ban = { until: Date.now() + HOUR_S * 1000, why: 'said by the test' };
    const places = ['futures a.test', 'funding a.test', 'futures b.test'];
    writeFileSync(
      join(folder, 'bans.json'),
      JSON.stringify(Object.fromEntries(places.map((place) => [place, ban]))),
    );
    const result = await cryptodl(['doctor', '--clear-bans', 'a.test', '--state-dir', folder, '--json']);
    expect(result.code).toBe(0);
    expect(result.events).toEqual([
      { check: 'bans', status: 'ok', found: 'removed: futures a.test, funding a.test' },
    ]);
    expect(JSON.parse(readFileSync(join(folder, 'bans.json'), 'utf8'))).toEqual({ 'futures b.test': ban });
  });

  it.skipIf(MISSING.user !== undefined)('that cannot be removed is told as a failure', async () => {
    const folder = join(scratch, 'others/state');
    mkdirSync(folder, { recursive: true });
    for (const path of [scratch, join(scratch, 'others'), folder]) chmodSync(path, 0o755);
    const ban = { until: Date.now() + HOUR_S * 1000, why: 'said by the test' };
    writeFileSync(join(folder, 'bans.json'), JSON.stringify({ 'futures a.test': ban }));
    const wrap = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const result = await cryptodl(['doctor', '--clear-bans', 'a.test', '--state-dir', folder], { wrap });
    expect([result.code, result.stdout]).toEqual([
      1,
      expect.stringMatching(/^fail +bans +the bans of a\.test could not be removed/),
    ]);
  });

  it('short enough to be waited for is waited for, and uses up no attempt', async () => {
    let refusals = 0;
    archive.fault = (path, _, response) => {
      if (!path.endsWith('-2026-11-19.zip') || refusals === 2) return false;
      refusals += 1;
      response.writeHead(429, { 'retry-after': '1' }).end();
      return true;
    };
    const result = await run('short', '--retries', '0', '--json');
    expect(result.code).toBe(0);
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 3 }, retries: 0 });
  });
});

describe('the state of the machine', () => {
  it.each(['not json', '[]', '{"archive x":{"until":"soon"}}'])(
    'is not used, and stays with a warning, when it is damaged: %s',
    async (content) => {
      const folder = join(scratch, 'damaged/state');
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'bans.json'), content);
      const result = await run('damaged');
      expect(result.code).toBe(0);
      expect(result.stderr).toMatch(
        /^warning: the state file .*bans\.json is damaged: its content is not used/m,
      );
      expect(readFileSync(join(folder, 'bans.json'), 'utf8')).toBe(content);
    },
  );

  it('that cannot be written costs a warning, not the run', async () => {
    const folder = join(scratch, 'unwritable');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'state'), 'a file, not a folder');
    let refusals = 0;
    archive.fault = (path, _, response) => {
      if (!path.endsWith('-2026-11-19.zip') || refusals === 1) return false;
      refusals += 1;
      response.writeHead(429, { 'retry-after': '1' }).end();
      return true;
    };
    const result = await run('unwritable');
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('warning: the state file');
  });
});
