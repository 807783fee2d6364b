/** A whole run of 3,100 objects through the real binary, from hosts that misbehave all the time. */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlProcess, cryptodlProcessOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { parquetDigests } from '../helpers/lake.js';
import { randoms } from '../helpers/randoms.js';

const SYMBOLS = Array.from({ length: 100 }, (_, index) => `S${String(index).padStart(3, '0')}USDT`);
const OBJECTS = SYMBOLS.length * 31;
/** Each object is a zip and its sidecar, and each symbol a listing page. */
const USEFUL = OBJECTS * 2 + SYMBOLS.length;

/** Six ways to fail, in turn; those within a body only where there is one. */
const WAYS: readonly ((response: ServerResponse, body: Buffer) => void)[] = [
  (response) => response.writeHead(503).end(),
  (response) => response.socket?.resetAndDestroy(),
  (response, body) => {
    response.writeHead(200, { 'content-length': body.length });
    response.write(body.subarray(0, body.length >> 1), () => response.socket?.end());
  },
  (response, body) => {
    const flipped = Buffer.from(body);
    flipped[flipped.length >> 1] = (flipped[flipped.length >> 1] ?? 0) ^ 0x10;
    response.writeHead(200, { 'content-length': body.length }).end(flipped);
  },
  (response) => response.writeHead(429).end(),
  (response, body) => {
    response.writeHead(200, { 'content-length': body.length });
    response.write(body.subarray(0, body.length >> 1));
  },
];

describe('3,100 objects', () => {
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  let undisturbed: string[];
  beforeAll(async () => {
    makeArchive(folder, {
      market: 'um',
      dataset: 'metrics',
      symbols: SYMBOLS,
      from: '2026-10-01',
      to: '2026-10-31',
      cadence: 'daily',
    });
    archive = await startArchive(folder);
    const out = join(scratch, 'undisturbed');
    await cryptodlProcessOk(command(out));
    undisturbed = await parquetDigests(out);
  }, 240_000);
  afterAll(() => archive.close());
  afterEach(() => {
    archive.fault = undefined;
  });

  /** With default options, except for those that would make the test long. */
  function command(out: string, flags: readonly string[] = []): string[] {
    const what = ['--dataset', 'metrics', '--symbols', 'all', '--from', '2026-10-01', '--to', '2026-10-31'];
    return ['vision', ...what, '--archive-url', archive.url, '--out', out, '--json', ...flags];
  }

  it('end with exit 0 and every row while one request in ten fails in six ways, at a quarter more requests at most', async () => {
    const random = randoms(3);
    let failed = 0;
    archive.fault = (path, _request, response) => {
      if (random() >= 0.1 || path.includes('prefix=')) return false;
      failed += 1;
      WAYS[failed % WAYS.length]?.(response, readFileSync(join(folder, path)));
      return true;
    };
    archive.requests.length = 0;
    const out = join(scratch, 'six-ways');
    const result = await cryptodlProcess(command(out, ['--idle-timeout', '1s']));
    expect(failed).toBeGreaterThan(OBJECTS / 6);
    expect(result.events.at(-1)).toMatchObject({
      outcomes: { ok: OBJECTS, failed: 0, absent: 0 },
      rows: OBJECTS * 288,
      exitCode: 0,
    });
    expect(await parquetDigests(out)).toEqual(undisturbed);
    expect(archive.requests.length).toBeLessThanOrEqual(USEFUL * 1.25);
  }, 240_000);

  it('settle by themselves where a host refuses what exceeds 40 in flight, at one request in twenty refused at most', async () => {
    let inFlight = 0;
    let refused = 0;
    archive.fault = (_path, request, response) => {
      if (inFlight >= 40) {
        refused += 1;
        response.writeHead(503).end();
        return true;
      }
      inFlight += 1;
      response.on('close', () => (inFlight -= 1));
      setTimeout(() => archive.serve(request, response), 60);
      return true;
    };
    archive.requests.length = 0;
    const out = join(scratch, 'forty');
    const result = await cryptodlProcess(command(out));
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: OBJECTS, failed: 0 }, exitCode: 0 });
    expect(await parquetDigests(out)).toEqual(undisturbed);
    expect(refused / archive.requests.length).toBeLessThanOrEqual(0.05);
  }, 240_000);
});
