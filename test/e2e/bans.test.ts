/** N24 to N26: a host that says for how long it wants to be left alone is left alone, by the next run too. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { MISSING } from '../helpers/local-faults.js';
import { isZip, useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const HOUR_S = 3600;
const scene = useScene({
  archive: [{ from: '2026-11-18', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --days 3',
});
const RETRY_AFTER = { 'retry-after': String(HOUR_S) };

/** The runs of a name share a lake and a state folder. */
const run = (name: string, ...flags: string[]): Promise<SceneRun> =>
  scene.vision([...state(name), ...flags], { lake: join(name, 'data') });
const state = (name: string): string[] => ['--state-dir', join(scene.scratch, name, 'state')];

type Refusal = (response: ServerResponse) => void;

/** From now on zips are refused. */
function refuse(answer: Refusal): void {
  scene.answer(isZip, (_, response) => {
    answer(response);
  });
}

/** The archive is sound again. */
function recover(): void {
  scene.reset();
}

const folderOf = (name: string): string => join(scene.scratch, name, 'state/bans');

/** A file in the folder of bans of a name. Returns its path. */
function writeFileOf(name: string, file: string, content: string): string {
  mkdirSync(folderOf(name), { recursive: true });
  writeFileSync(join(folderOf(name), file), content);
  return join(folderOf(name), file);
}

const writeBan = (name: string, place: string, ban: { until: number; why: string }): string =>
  writeFileOf(name, `${encodeURIComponent(place)}.json`, JSON.stringify({ place, ...ban }));

describe('a ban', () => {
  it.each<[string, Refusal]>([
    ['N26 418 with Retry-After', (response) => response.writeHead(418, RETRY_AFTER).end()],
    ['N24 429 with Retry-After', (response) => response.writeHead(429, RETRY_AFTER).end()],
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
  ])('%s beyond --max-wait ends the run with 7, and the next run without a request', async (name, answer) => {
    refuse(answer);
    expect((await run(name)).code).toBe(7);
    recover();
    const second = await run(name);
    expect([second.code, scene.archive.requests]).toEqual([7, []]);
    expect(second.stderr).toMatch(/^cryptodl: .*answered 4\d\d.*no request is sent before 20\d\d-.* UTC\n/);
    const [, until = ''] = /before (20.*) UTC\n/.exec(second.stderr) ?? [];
    const untilMs = Date.parse(`${until.replace(' ', 'T')}Z`);
    expect(Math.abs(untilMs - HOUR_S * 1000 - Date.now())).toBeLessThan(5 * 60_000);
    const listed = await cryptodl(['list', 'symbols', '--archive-url', scene.archive.url, ...state(name)]);
    expect([listed.code, scene.archive.requests]).toEqual([7, []]);
  });

  it('that another run is told of ends a run before its next request', async () => {
    const { host } = new URL(scene.archive.url);
    const ban = { until: Date.now() + HOUR_S * 1000, why: 'said by the test' };
    scene.answer(isZip, (request, response) => {
      writeBan('running', `archive ${host}`, ban);
      // The bans of other runs are read once in a second.
      setTimeout(() => {
        scene.archive.serve(request, response);
      }, 1100);
    });
    const result = await run('running', '--verify', 'none', '--concurrency', '1');
    expect([result.code, scene.archive.requests.filter(isZip).length]).toEqual([7, 1]);
  });

  const WEEK_MS = 7 * 86_400_000;
  const untilOf = (name: string): number[] =>
    readdirSync(folderOf(name)).map((file) => {
      const { until } = JSON.parse(readFileSync(join(folderOf(name), file), 'utf8')) as { until: number };
      return Math.abs(until - WEEK_MS - Date.now());
    });

  it('of absurd length counts as 7 days; the message names the command that removes it', async () => {
    refuse((response) => response.writeHead(418, { 'retry-after': '9'.repeat(20) }).end());
    const first = await run('absurd');
    expect([first.code, first.stderr]).toEqual([
      7,
      expect.stringContaining('the host asks for a wait of 168h 0m'),
    ]);
    recover();
    const second = await run('absurd');
    expect(second.code).toBe(7);
    expect(second.stderr).toContain('answered 418 (it asks for a longer wait than 7 days)');
    expect(second.stderr).toContain(`cryptodl doctor --clear-bans ${new URL(scene.archive.url).host}`);
    expect(Math.max(...untilOf('absurd'))).toBeLessThan(5 * 60_000);
  });

  it('is removed by doctor --clear-bans, without a request', async () => {
    refuse((response) => response.writeHead(418, { 'retry-after': '9'.repeat(20) }).end());
    expect((await run('cleared')).code).toBe(7);
    recover();
    const { host } = new URL(scene.archive.url);
    const cleared = await cryptodl(['doctor', '--clear-bans', host, ...state('cleared')]);
    expect([cleared.code, cleared.stdout]).toEqual([0, `ok  bans  removed: archive ${host}\n`]);
    expect(scene.archive.requests).toEqual([]);
    expect((await run('cleared')).code).toBe(0);
    const again = await cryptodl(['doctor', '--clear-bans', host, ...state('cleared')]);
    expect([again.code, again.stdout]).toEqual([0, `ok  bans  no ban of ${host} is in force\n`]);
  });

  it('that is remembered until the year 9999 names the command that removes it', async () => {
    const { host } = new URL(scene.archive.url);
    const ban = { until: Date.UTC(9999, 0), why: 'said by the test' };
    writeBan('year-9999', `archive ${host}`, ban);
    const { code, stderr } = await run('year-9999');
    expect([code, stderr]).toEqual([7, expect.stringContaining(`cryptodl doctor --clear-bans ${host}`)]);
  });

  it('is removed in all buckets of its host, and of no other host', async () => {
    const ban = { until: Date.now() + HOUR_S * 1000, why: 'said by the test' };
    const places = ['funding a.test', 'futures a.test', 'futures b.test'];
    const [, , kept = ''] = places.map((place) => writeBan('buckets', place, ban));
    const result = await cryptodl(['doctor', '--clear-bans', 'a.test', ...state('buckets'), '--json']);
    const removed = 'removed: funding a.test, futures a.test';
    expect([result.code, result.events]).toEqual([0, [{ check: 'bans', status: 'ok', found: removed }]]);
    expect(readdirSync(folderOf('buckets'))).toEqual([basename(kept)]);
  });

  it.skipIf(MISSING.user !== undefined)('that cannot be removed is a failure of the check', async () => {
    const ban = { until: Date.now() + HOUR_S * 1000, why: 'said by the test' };
    const file = writeBan('others', 'futures a.test', ban);
    for (const path of ['..', '../..', '../../..', '../../../..']) chmodSync(join(file, path), 0o755);
    const wrap = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const result = await cryptodl(['doctor', '--clear-bans', 'a.test', ...state('others')], { wrap });
    expect([result.code, result.stdout]).toEqual([
      1,
      expect.stringMatching(/^fail +bans +the bans of a\.test could not be removed/),
    ]);
  });
});

describe('a file in the folder of bans with other content', () => {
  it.each(['not json', '[]', '{"place":"archive x","until":"soon","why":""}'])(
    'is not used, and stays, with a warning: %s',
    async (content) => {
      const file = writeFileOf('damaged', 'x.json', content);
      const { code, stderr } = await run('damaged');
      const warning = /^warning: .*bans\/x\.json is not a ban, and not used$/m;
      expect([code, stderr]).toEqual([0, expect.stringMatching(warning)]);
      expect(readFileSync(file, 'utf8')).toBe(content);
    },
  );
});
