/** Which of several jobs gets the permits of a scarce budget, as the venue sees it. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';
import { RestVenue } from '../helpers/rest-venue.js';

const scratch = scratchFolder();
/** The window of the statistics has just begun, and does not end during a test. */
const NOW = Date.parse('2026-11-21T08:00:05Z');
const ANSWER_MS = 25;
const SYMBOLS_OF_EACH = 8;
/** Pages of 29 days of one symbol. */
const PAGES = 17;

let close: (() => Promise<void>) | undefined;
afterEach(() => close?.());

const symbolsOf = (run: string, count = SYMBOLS_OF_EACH): string[] =>
  Array.from({ length: count }, (_, index) => `${run}${index}USDT`);

/** A venue that answers statistics when all of these runs have asked, and notes whose each request is. */
async function venueOf(runs: readonly string[]) {
  const symbols: readonly VenueSymbol[] = runs
    .flatMap((run) => symbolsOf(run))
    .map((symbol) => ({ symbol, host: 'fapi' }));
  const begunAt = Date.now();
  const venue = new RestVenue({ symbols, now: () => NOW + Date.now() - begunAt });
  const order: string[] = [];
  const held: (() => void)[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://venue');
    const { status, headers, body } = venue.answer('fapi', pathname, searchParams);
    const say = (): void => void response.writeHead(status, headers).end(body);
    if (!pathname.startsWith('/futures/data/')) {
      say();
      return;
    }
    order.push(searchParams.get('symbol')?.replace(/\d.*$/, '') ?? '');
    held.push(() => setTimeout(say, ANSWER_MS));
    if (runs.every((run) => order.includes(run))) for (const answer of held.splice(0)) answer();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  close = () =>
    new Promise((resolve) => {
      server.close(() => {
        resolve();
      });
      server.closeAllConnections();
    });
  return { venue, order, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const whatOf = (url: string, permits: number): string[] => [
  '--fapi-url',
  url,
  '--archive-url',
  'http://127.0.0.1:9',
  '--now',
  new Date(NOW).toISOString(),
  '--limits',
  `futuresData=${permits}/5m`,
  ...FAST,
];

/** Requests while the first of these runs had work, from when all of them had begun. */
function whileHighWorks(order: readonly string[], runs: readonly string[]): readonly string[] {
  const from = Math.max(...runs.map((run) => order.indexOf(run)));
  return order.slice(from, order.lastIndexOf(runs[0] ?? '') + 1);
}

function shareOf(run: string, order: readonly string[]): number {
  return order.filter((name) => name === run).length / order.length;
}

function fifths(order: readonly string[]): (readonly string[])[] {
  const length = Math.ceil(order.length / 5);
  return [0, 1, 2, 3, 4].map((part) => order.slice(part * length, (part + 1) * length));
}

describe('jobs of one run on one scarce budget', () => {
  const lines = (runs: Readonly<Record<string, string>>): string =>
    Object.entries(runs)
      .map(([name, priority]) => {
        const symbols = symbolsOf(name.toUpperCase()).join(',');
        return `  ${name}: { verb: metrics, symbols: "${symbols}", priority: ${priority}, out: ${name} }`;
      })
      .join('\n');

  /** The order of the file is not that of the priorities. */
  async function run(url: string, permits: number): Promise<CliResult> {
    const cwd = mkdtempSync(join(scratch, 'in-'));
    const jobs = lines({ last: 'low', middle: 'normal', first: 'high' });
    writeFileSync(
      join(cwd, 'jobs.yaml'),
      `defaults: { dataset: openInterestHist, days: 29, jobs: 3 }\njobs:\n${jobs}\n`,
    );
    return cryptodl(['run', 'jobs.yaml', '--json', ...whatOf(url, permits)], { cwd });
  }

  it('high takes at least 70 % while it has work, normal comes before low, and low goes on all the time', async () => {
    const { venue, order, url } = await venueOf(['FIRST', 'MIDDLE', 'LAST']);
    const result = await run(url, 600);
    expect([result.code, venue.refused]).toEqual([0, 0]);
    const meanwhile = whileHighWorks(order, ['FIRST', 'MIDDLE', 'LAST']);
    expect(order).toHaveLength(3 * SYMBOLS_OF_EACH * PAGES);
    expect(shareOf('FIRST', meanwhile)).toBeGreaterThanOrEqual(0.7);
    // On a busy machine, the requests stay below an even pace for a while, and low takes more than its share.
    expect(shareOf('MIDDLE', meanwhile)).toBeGreaterThan(shareOf('LAST', meanwhile));
    for (const part of fifths(meanwhile)) expect(part).toContain('MIDDLE');
    expect(meanwhile.filter((name) => name === 'LAST').length).toBeGreaterThanOrEqual(4);
    const ends = result.events.filter(({ event }) => event === 'summary').map(({ job }) => job);
    expect(ends).toEqual(['first', 'middle', 'last', undefined]);
  }, 120_000);
});
