/** The requests to the bucket of a lake in the figures of a run, as the server counted them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { valueOf } from '../helpers/prometheus.js';
import { S3Server } from '../helpers/s3-server.js';
import type { S3Record } from '../helpers/s3-server.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
});
let server: S3Server;
let lakes = 0;
let out = '';
beforeAll(async () => {
  server = await new S3Server().listen();
});
afterAll(() => server.close());
beforeEach(() => {
  lakes += 1;
  out = `s3://lake/figures/${lakes}`;
  server.fault = undefined;
  server.requests.length = 0;
});

const methodOf = ({ method, key }: S3Record): string => (method === 'GET' && key === '' ? 'LIST' : method);

function counted(records: readonly S3Record[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const record of records) counts[methodOf(record)] = (counts[methodOf(record)] ?? 0) + 1;
  return counts;
}

/** Without those after the summary: the run then publishes its record and its failure report. */
function ofRun(): S3Record[] {
  const isLate = ({ method, key }: S3Record): boolean =>
    method === 'PUT' && !/\/(?:binance|_manifests|orders)\//.test(key);
  const end = server.requests.findIndex(isLate);
  return server.requests.slice(0, end);
}

function vision(...flags: string[]): Promise<CliResult> {
  const what = ['--interval', '1h', '--symbols', 'BTCUSDT,ETHUSDT', '--out', out];
  const places = ['--archive-url', scene.archive.url, '--now', scene.now, ...FAST];
  return cryptodl(['vision', ...what, ...places, ...flags], { env: server.environment });
}

function refusePuts(most: number): void {
  let refused = 0;
  server.fault = ({ method }) => {
    if (method !== 'PUT' || refused === most) return undefined;
    refused += 1;
    return { status: 503, code: 'SlowDown' };
  };
}

describe('the requests to the bucket of a lake', () => {
  it('are in the summary of a run', async () => {
    refusePuts(2);
    const { code, events } = await vision('--days', '4', '--json');
    expect(code).toBe(0);
    const network = events.at(-1)?.['network'] as { lake?: unknown } | undefined;
    expect(network?.lake).toEqual({
      host: new URL(server.url).host,
      requests: counted(ofRun()),
      statuses: {
        200: ofRun().filter(({ status }) => status === 200).length,
        404: ofRun().filter(({ status }) => status === 404).length,
        // The trials of the two conditions.
        412: 2,
        503: 2,
      },
      retries: { 'rate-limited': 2 },
      errors: { 'rate-limited': 2 },
      sentBytes: ofRun().reduce((sum, { bytes }) => sum + bytes, 0),
      receivedBytes: expect.any(Number),
    });
  });

  it('are those of docs/s3.md', async () => {
    expect((await vision('--days', '2')).code).toBe(0);
    // Two series are planned: 1 LIST and 1 GET each. Two partitions are written: 2 PUT and 2 HEAD each. A run: 1 LIST of orders, 1 HEAD, and 1 PUT and 1 HEAD of an order, and 2 PUT that try the conditions.
    expect(counted(ofRun())).toEqual({ LIST: 3, GET: 2, PUT: 7, HEAD: 6 });
    const late = server.requests.slice(ofRun().length);
    // The record and, in a new lake, the notice about the terms.
    expect(counted(late)).toEqual({ PUT: 2, HEAD: 2 });
    server.requests.length = 0;
    expect((await vision('--days', '4')).code).toBe(0);
    // Rows are added to each of the two files.
    expect(counted(ofRun())).toEqual({ LIST: 3, GET: 5, PUT: 7, HEAD: 6 });
    expect(counted(server.requests.slice(ofRun().length))).toEqual({ PUT: 1, HEAD: 1 });
  });

  it('are in the metrics and the log', async () => {
    refusePuts(1);
    const folder = scene.newFolder();
    const file = (name: string): string => join(folder, name);
    const { code } = await vision(
      '--days',
      '2',
      '--prometheus-textfile',
      file('metrics.prom'),
      '--log-file',
      file('log.jsonl'),
      '--log-level',
      'debug',
    );
    expect(code).toBe(0);
    const page = readFileSync(file('metrics.prom'), 'utf8');
    const { host } = new URL(server.url);
    for (const [method, count] of Object.entries(counted(ofRun())))
      expect(valueOf(page, 'cryptodl_lake_requests_total', { host, method })).toBe(count);
    expect(valueOf(page, 'cryptodl_lake_retries_total', { reason: 'rate-limited' })).toBe(1);
    const sent = ofRun().reduce((sum, { bytes }) => sum + bytes, 0);
    expect(valueOf(page, 'cryptodl_lake_sent_bytes_total')).toBe(sent);
    // The records of earlier runs are listed before the run and its log begin, and the lake for its verdict after their end.
    const logged = ofRun().filter(
      ({ query }) => !/\/(?:runs|binance|_failures)\/$/.test(query['prefix'] ?? ''),
    );
    const log = readFileSync(file('log.jsonl'), 'utf8');
    const attempts = log.split('\n').filter((line) => line.includes(server.url));
    expect(attempts.length).toBeGreaterThanOrEqual(logged.length);
    for (const text of [page, log]) expect(text).not.toContain(server.options.secretAccessKey);
  });

  it('are not there for a lake in a folder', async () => {
    out = join(scene.newFolder(), 'lake');
    const { code, events, stderr } = await vision('--days', '2', '--json');
    expect([code, (events.at(-1)?.['network'] as object | undefined) ?? {}]).toEqual([
      0,
      expect.not.objectContaining({ lake: expect.anything() }),
    ]);
    expect(stderr).not.toContain('bucket');
  });
});
