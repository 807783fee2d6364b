/** The metrics of `--prometheus-port` and `--prometheus-textfile`. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lakePaths } from '../../src/lake/layout.js';
import { readRuns } from '../../src/run/monitor/run-files.js';
import { freePort, samplesOf, valueOf } from '../helpers/prometheus.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 3',
});
const KLINES = { market: 'um', dataset: 'klines' };

/** A new path of a textfile. */
const newFile = (): string => join(scene.newFolder(), 'cryptodl.prom');

const servedStatuses = (page: string): Record<string, number> =>
  Object.fromEntries(
    samplesOf(page)
      .filter(({ name }) => name === 'cryptodl_requests_total')
      .map(({ labels, value }) => [`${labels['host']} ${labels['status']}`, value]),
  );

describe('--prometheus-port', () => {
  it('serves the figures of the run while it runs, and not longer', async () => {
    const port = await freePort();
    const at = (path: string, method = 'GET'): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}${path}`, { method });
    const seen = { begun: false, open: () => undefined as void };
    const opened = new Promise<void>((resolve) => {
      seen.open = resolve;
    });
    const held = new Promise<void>((resolve) => {
      scene.answer(isZip, (request, response) => {
        resolve();
        void opened.then(() => {
          scene.archive.serve(request, response);
        });
      });
    });
    const run = scene.vision(['--prometheus-port', String(port), '--concurrency', '2']);
    await held;
    const answer = await at('/metrics');
    const page = await answer.text();
    const again = await (await at('/metrics')).text();
    const [other, posted, queried] = [
      await at('/'),
      await at('/metrics', 'POST'),
      await at('/metrics?name=x'),
    ];
    // A reader that sends only half of a request does not delay the end of the run.
    const reader = connect(port, '127.0.0.1').on('error', () => undefined);
    await new Promise((written) => reader.write('GET /metrics HTTP/1.1\r\n', written));
    // Another address of this machine.
    await expect(fetch(`http://127.0.0.2:${port}/metrics`)).rejects.toThrow('fetch failed');
    seen.open();
    expect((await run).code).toBe(0);
    expect([answer, other, posted, queried].map(({ status }) => status)).toEqual([200, 404, 405, 200]);
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    for (const text of [page, again]) expect(valueOf(text, 'cryptodl_queue_objects')).toBe(6);
    expect(valueOf(page, 'cryptodl_objects_in_flight')).toBe(2);
    expect(valueOf(page, 'cryptodl_concurrency_limit')).toBe(2);
    expect(valueOf(page, 'cryptodl_pool_sockets_busy')).toBeGreaterThanOrEqual(1);
    expect(valueOf(page, 'cryptodl_objects_total')).toBeUndefined();
    // The listing has been received.
    expect(valueOf(page, 'cryptodl_request_duration_seconds_count')).toBeGreaterThanOrEqual(1);
    await expect(at('/metrics')).rejects.toThrow('fetch failed');
  });

  it('is refused before the first request if another program listens there', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await scene.vision(['--prometheus-port', String(port)]);
    server.close();
    expect([code, scene.archive.requests]).toEqual([2, []]);
    expect(stderr).toBe(
      `cryptodl: --prometheus-port: cannot listen on 127.0.0.1 port ${port} (another program listens there)\n  choose another port\n`,
    );
  });
});

describe('--prometheus-textfile', () => {
  it('has what the archive answered and what the lake got', async () => {
    const file = newFile();
    const seen: Record<string, number> = {};
    scene.answerFirst(isZip, (_request, response) => response.writeHead(503).end(), 2);
    const { code, lake } = await scene.vision(['--prometheus-textfile', file]);
    const page = readFileSync(file, 'utf8');
    const { host } = new URL(scene.archive.url);
    seen[`${host} 200`] = scene.archive.requests.length - 2;
    seen[`${host} 503`] = 2;
    expect([code, servedStatuses(page)]).toEqual([0, seen]);
    expect(valueOf(page, 'cryptodl_request_duration_seconds_count', { host })).toBe(seen[`${host} 200`]);
    expect(valueOf(page, 'cryptodl_request_duration_seconds_bucket', { host, le: '+Inf' })).toBe(
      seen[`${host} 200`],
    );
    expect(valueOf(page, 'cryptodl_retries_total', { reason: 'http-server-error' })).toBe(2);
    expect(valueOf(page, 'cryptodl_request_errors_total', { code: 'http-server-error' })).toBe(2);
    expect(valueOf(page, 'cryptodl_retried_requests_total')).toBe(2);
    expect(valueOf(page, 'cryptodl_retried_requests_succeeded_total')).toBe(2);
    expect(valueOf(page, 'cryptodl_breaker_state', { host })).toBe(0);
    expect(valueOf(page, 'cryptodl_objects_total', { ...KLINES, outcome: 'ok' })).toBe(6);
    expect(valueOf(page, 'cryptodl_rows_total', KLINES)).toBe((await scene.rows({ lake })).length);
    expect(valueOf(page, 'cryptodl_bytes_total', KLINES)).toBe(
      valueOf(page, 'cryptodl_received_bytes_total'),
    );
    expect(valueOf(page, 'cryptodl_queue_objects')).toBe(0);
    expect(valueOf(page, 'cryptodl_coverage_ratio', KLINES)).toBe(1);
    expect(valueOf(page, 'cryptodl_newest_period_end_timestamp_seconds', KLINES)).toBe(
      Date.parse('2026-11-21T00:00:00Z') / 1000,
    );
    expect(valueOf(page, 'cryptodl_check_exit_code', { run_job: 'vision' })).toBe(0);
    expect(valueOf(page, 'cryptodl_last_run_exit_code', { run_job: 'vision' })).toBe(0);
    expect(valueOf(page, 'cryptodl_last_success_timestamp_seconds', { run_job: 'vision' })).toBe(
      valueOf(page, 'cryptodl_last_run_timestamp_seconds', { run_job: 'vision' }),
    );
    expect(valueOf(page, 'cryptodl_resident_memory_bytes')).toBeGreaterThan(1e7);
    // Only the file itself is left, and a label keeps it apart from the files of other commands.
    expect(readdirSync(join(file, '..'))).toEqual(['cryptodl.prom']);
    expect(new Set(samplesOf(page).map(({ labels }) => labels['textfile']))).toEqual(new Set(['cryptodl']));
  });

  it('has no datasets that only a record names, because the lake may come from another person', async () => {
    const { lake } = await scene.vision();
    const { runs } = await readRuns(lakePaths(lake));
    const [record] = runs;
    if (record === undefined) throw new Error('no record');
    const [dataset] = record.summary.datasets;
    const datasets = Array.from({ length: 900 }, (_, at) => ({ ...dataset, dataset: `toString${at}` }));
    const id = record.id.replace(/.{8}$/, 'ffffffff');
    const hostile = { ...record, id, summary: { ...record.summary, datasets } };
    writeFileSync(join(lake, `.cryptodl/runs/${id}.json`), JSON.stringify(hostile));
    expect((await readRuns(lakePaths(lake))).runs).toHaveLength(2);
    const file = newFile();
    await scene.vision(['--prometheus-textfile', file], { lake: lake.slice(scene.scratch.length + 1) });
    const page = readFileSync(file, 'utf8');
    expect(page).not.toContain('toString');
    expect(valueOf(page, 'cryptodl_newest_period_end_timestamp_seconds', KLINES)).toBeGreaterThan(0);
  });

  it('keeps the last success and the newest period through failed runs, and counts these', async () => {
    const file = newFile();
    const flags = ['--prometheus-textfile', file];
    const { lake: path } = await scene.vision(flags);
    const lake = path.slice(scene.scratch.length + 1);
    const read = (name: string, labels = {}): number | undefined =>
      valueOf(readFileSync(file, 'utf8'), name, labels);
    const success = read('cryptodl_last_success_timestamp_seconds') ?? 0;
    expect(read('cryptodl_failed_runs_in_a_row')).toBe(0);
    scene.refuse(isZip, 403);
    for (const inARow of [1, 2]) {
      const { code } = await scene.vision([...flags, '--days', '5'], { lake });
      expect([code, read('cryptodl_last_run_exit_code')]).toEqual([4, 4]);
      expect([read('cryptodl_check_exit_code'), read('cryptodl_check_lacking_series')]).toEqual([3, 2]);
      expect(read('cryptodl_failed_runs_in_a_row')).toBe(inARow);
      expect(Math.abs((read('cryptodl_last_success_timestamp_seconds') ?? 0) - success)).toBeLessThan(5);
      expect(read('cryptodl_last_success_timestamp_seconds')).toBeLessThan(
        read('cryptodl_last_run_timestamp_seconds') ?? 0,
      );
      expect(read('cryptodl_coverage_ratio', KLINES)).toBeCloseTo(6 / 10);
      expect(read('cryptodl_object_failures_total')).toBe(4);
    }
    scene.archive.fault = undefined;
    // A run that cannot begin leaves no record.
    const { code } = await scene.vision([...flags, '--days', '5', '--max-bytes', '1'], { lake });
    expect([code, read('cryptodl_last_run_exit_code')]).toEqual([2, 2]);
    expect(read('cryptodl_failed_runs_in_a_row')).toBe(2);
    expect(read('cryptodl_objects_total')).toBeUndefined();
    expect(read('cryptodl_coverage_ratio', KLINES)).toBeCloseTo(6 / 10);
    expect(read('cryptodl_newest_period_end_timestamp_seconds', KLINES)).toBe(
      Date.parse('2026-11-21T00:00:00Z') / 1000,
    );
    expect(read('cryptodl_requests_total', { status: '200' })).toBeGreaterThanOrEqual(1);
    await scene.vision(flags, { lake });
    expect([read('cryptodl_failed_runs_in_a_row'), read('cryptodl_coverage_ratio')]).toEqual([0, 1]);
  });

  it('is written after a signal, with the objects that are left', async () => {
    const file = newFile();
    const run = scene.vision(['--prometheus-textfile', file], {
      onSpawn: (child) => {
        let kill = (): unknown => child.kill('SIGTERM');
        scene.answer(isZip, () => {
          kill();
          // A second signal would end the process at once.
          kill = () => undefined;
        });
      },
    });
    expect((await run).code).toBe(143);
    const page = readFileSync(file, 'utf8');
    expect(valueOf(page, 'cryptodl_last_run_exit_code')).toBe(143);
    expect(valueOf(page, 'cryptodl_last_success_timestamp_seconds')).toBeUndefined();
    expect(valueOf(page, 'cryptodl_queue_objects')).toBe(6);
  });

  it('can be read by the user of node_exporter, also with a strict umask', async () => {
    const file = newFile();
    const umask = process.umask(0o077);
    try {
      expect((await scene.vision(['--prometheus-textfile', file])).code).toBe(0);
    } finally {
      process.umask(umask);
    }
    expect((statSync(file).mode & 0o777).toString(8)).toBe('644');
  });

  it.runIf(process.platform === 'linux')('that cannot be written is a warning', async () => {
    const { code, stderr } = await scene.vision(['--prometheus-textfile', '/proc/cryptodl.prom']);
    expect(code).toBe(0);
    expect(stderr).toContain('warning: --prometheus-textfile /proc/cryptodl.prom cannot be written (');
  });
});
