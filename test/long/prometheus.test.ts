/** The metrics, rules and dashboard, with promtool and a real Prometheus. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { cryptodlProcess, FAST } from '../helpers/cli.js';
import { freePort, valueOf } from '../helpers/prometheus.js';
import { isZip, useScene } from '../helpers/scene.js';

const CONFIG = fileURLToPath(new URL('../../config/monitoring', import.meta.url));
/** The configuration of Debian's package. */
const DEBIAN = '/etc/prometheus/prometheus.yml';
const IS_THERE = ['promtool', 'prometheus'].every((name) => spawnSync(name, ['--version']).status === 0);
const NEEDS = IS_THERE ? '' : ' (needs promtool and prometheus: apt install prometheus)';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 3',
});

const promtool = (words: readonly string[], input = ''): [number | null, string] => {
  const { status, stdout, stderr } = spawnSync('promtool', words, { cwd: CONFIG, input, encoding: 'utf8' });
  return [status, status === 0 ? '' : `${stdout}${stderr}`];
};

describe.skipIf(!IS_THERE)(`promtool${NEEDS}`, () => {
  it('accepts the metrics of a run, with its failures and waits', async () => {
    const file = join(scene.newFolder(), 'cryptodl.prom');
    scene.answerFirst(
      isZip,
      (_request, response) => response.writeHead(429, { 'retry-after': '1' }).end(),
      1,
    );
    const flags = ['--prometheus-textfile', file, '--limits', 'archive=20/s'];
    expect((await scene.vision(flags)).code).toBe(0);
    const page = readFileSync(file, 'utf8');
    expect(page).toMatch(/^cryptodl_limiter_refusals_total\{bucket="archive",textfile="cryptodl"\} 1$/m);
    expect(promtool(['check', 'metrics'], page)).toEqual([0, '']);
  });

  it('accepts the rules', () => {
    expect(promtool(['check', 'rules', 'alerts.yml'])).toEqual([0, '']);
  });

  it.skipIf(!existsSync(DEBIAN))('accepts its own configuration with the lines of docs/monitoring.md', () => {
    const folder = scene.newFolder();
    const file = join(folder, 'prometheus.yml');
    copyFileSync(DEBIAN, file);
    copyFileSync(join(CONFIG, 'alerts.yml'), join(folder, 'cryptodl.yml'));
    const document = readFileSync(join(CONFIG, '../../docs/monitoring.md'), 'utf8');
    const [, line = ''] = /^sudo (sed .*)$/m.exec(document) ?? [];
    expect(spawnSync('sh', ['-c', line.replace(DEBIAN, file)]).status).toBe(0);
    expect(promtool(['check', 'config', file])).toEqual([0, '']);
    const { rule_files, scrape_configs } = parse(readFileSync(file, 'utf8')) as Record<string, unknown[]>;
    expect(rule_files).toContain('cryptodl.yml');
    expect(scrape_configs).toContainEqual(expect.objectContaining({ job_name: 'cryptodl' }));
  });

  it('finds that each rule fires when it should, and only then', () => {
    expect(promtool(['test', 'rules', 'alerts.test.yml'])).toEqual([0, '']);
    const { groups } = parse(readFileSync(join(CONFIG, 'alerts.yml'), 'utf8')) as Rules;
    const tests = readFileSync(join(CONFIG, 'alerts.test.yml'), 'utf8');
    const names = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    const fired = [...tests.matchAll(/alertname: (\w+)\n\s+exp_alerts/g)].map(([, name]) => name);
    expect(new Set(fired)).toEqual(new Set(names));
  });
});

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data: {
    readonly result: readonly { readonly metric: object; readonly value: [number, string] }[];
  };
}

describe.skipIf(!IS_THERE)(`a real Prometheus${NEEDS}`, () => {
  const started: ReturnType<typeof spawn>[] = [];
  afterAll(async () => {
    for (const child of started) {
      const closed = once(child, 'close');
      child.kill('SIGKILL');
      await closed;
    }
  });

  /** Starts a Prometheus that scrapes this port. Returns a function that queries it. */
  async function startPrometheus(target: number): Promise<(query: string) => Promise<Answer>> {
    const folder = scene.newFolder();
    const port = await freePort();
    writeFileSync(
      join(folder, 'prometheus.yml'),
      JSON.stringify({
        global: { scrape_interval: '250ms', evaluation_interval: '250ms' },
        rule_files: [join(CONFIG, 'alerts.yml')],
        scrape_configs: [{ job_name: 'cryptodl', static_configs: [{ targets: [`127.0.0.1:${target}`] }] }],
      }),
    );
    const words = [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/tsdb`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    started.push(spawn('prometheus', words, { stdio: 'ignore' }));
    return async (query) => {
      const address = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
      return (await (await fetch(address)).json()) as Answer;
    };
  }

  async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      const answer = await ask().catch(() => undefined);
      if (answer !== undefined) return answer;
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
    }
  }

  it('scrapes a run while it runs, and each query of the rules and panels has values', async () => {
    const target = await freePort();
    const query = await startPrometheus(target);
    // An earlier run, so that the lake has a success, and objects that the scraped run skips.
    expect((await scene.vision('--days 1', { lake: 'scraped' })).code).toBe(0);
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The first object arrives after two refusals, the others when Prometheus has seen the run.
    const answers: ((response: ServerResponse) => unknown)[] = [
      (response) => response.writeHead(429, { 'retry-after': '0' }).end(),
      (response) => response.writeHead(503).end(),
    ];
    let served = 0;
    scene.answer(isZip, (request, response) => {
      const answer = answers.shift();
      if (answer !== undefined) {
        answer(response);
        return;
      }
      served += 1;
      if (served === 1) scene.archive.serve(request, response);
      else
        void released.then(() => {
          scene.archive.serve(request, response);
        });
    });
    const lake = ['--out', join(scene.scratch, 'scraped'), '--archive-url', scene.archive.url];
    const words = '--symbols BTCUSDT,ETHUSDT --interval 1h --days 3 --concurrency 2'.split(' ');
    const port = ['--prometheus-port', String(target), '--now', scene.now];
    const run = cryptodlProcess(['vision', ...lake, ...words, ...port, ...FAST]);
    const found = async (expression: string): Promise<number | undefined> => {
      const [first] = (await query(expression)).data.result;
      return first === undefined ? undefined : Number(first.value[1]);
    };
    await until(async () =>
      (await found('cryptodl_received_bytes_total > 0')) === undefined ? undefined : 1,
    );
    expect(await found('cryptodl_queue_objects')).toBe(4);
    expect(await found('sum(cryptodl_objects_total{outcome="skipped"})')).toBe(2);
    expect(await found('sum(cryptodl_retries_total)')).toBeGreaterThanOrEqual(1);
    expect(await found('cryptodl_concurrency_limit')).toBe(2);
    expect(await found('sum(cryptodl_requests_total{status="200"})')).toBe(
      await found('sum(cryptodl_request_duration_seconds_count)'),
    );
    // Two scrapes make a rate.
    await until(() => found('count_over_time(cryptodl_build_info[1m]) >= 4'));
    const dashboard = JSON.parse(readFileSync(join(CONFIG, 'dashboard.json'), 'utf8')) as {
      panels: { title: string; targets: { expr: string }[] }[];
    };
    const empty: string[] = [];
    for (const { title, targets } of dashboard.panels) {
      for (const { expr } of targets) {
        const asked = expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m');
        const { status, error, data } = await query(asked);
        expect([asked, status, error]).toEqual([asked, 'success', undefined]);
        if (data.result.length === 0) empty.push(`${title}: ${expr}`);
      }
    }
    expect(empty).toEqual([]);
    const { groups } = parse(readFileSync(join(CONFIG, 'alerts.yml'), 'utf8')) as Rules;
    for (const { alert, expr } of groups.flatMap(({ rules }) => rules)) {
      // The time and the verdict of the last run are known after the run, from the textfile.
      if (alert === 'CryptodlNeverSucceeded' || alert === 'CryptodlIncomplete') continue;
      // Without the thresholds, each side of a rule has a value.
      for (const side of expr.split(/ and /)) {
        const { status, data } = await query(side.trim().replace(/^time\(\) > | [<>]=? [\d.* ]+$/g, ''));
        expect([alert, side, status, data.result.length]).toEqual([alert, side, 'success', 1]);
      }
      // The clock of this machine may be later than the time of the run.
      if (alert === 'CryptodlNotFresh') continue;
      expect([alert, (await query(expr)).data.result]).toEqual([alert, []]);
    }
    release();
    expect((await run).code).toBe(0);
    // The target is gone with the run.
    await until(async () => ((await found('up{job="cryptodl"}')) === 0 ? true : undefined));
  });
});

const HAS_EXPORTER = spawnSync('prometheus-node-exporter', ['--version']).status === 0;
const EXPORTER_NEEDS = HAS_EXPORTER ? '' : ' (needs node_exporter: apt install prometheus-node-exporter)';

describe.skipIf(!HAS_EXPORTER)(`a real node_exporter${EXPORTER_NEEDS}`, () => {
  it('passes on the textfiles of two commands, each with its label', async () => {
    const folder = scene.newFolder();
    for (const symbol of ['BTC', 'ETH'])
      await scene.vision(`--symbols ${symbol}USDT --prometheus-textfile ${join(folder, `${symbol}.prom`)}`, {
        sceneFlags: '--interval 1h --days 3',
      });
    const port = await freePort();
    const words = ['--collector.disable-defaults', '--collector.textfile'];
    const places = [`--collector.textfile.directory=${folder}`, `--web.listen-address=127.0.0.1:${port}`];
    const exporter = spawn('prometheus-node-exporter', [...words, ...places], { stdio: 'ignore' });
    try {
      let page = '';
      while (page === '')
        page = await fetch(`http://127.0.0.1:${port}/metrics`).then(
          (answer) => answer.text(),
          () => new Promise<string>((resolve) => setTimeout(resolve, 50, '')),
        );
      expect(valueOf(page, 'node_textfile_scrape_error')).toBe(0);
      for (const textfile of ['BTC', 'ETH']) {
        expect(valueOf(page, 'cryptodl_objects_total', { textfile, outcome: 'ok' })).toBe(3);
        expect(valueOf(page, 'cryptodl_fresh_until_timestamp_seconds', { textfile })).toBe(
          Date.parse('2026-11-24T00:00:00Z') / 1000,
        );
      }
      expect(page).toContain('# TYPE cryptodl_request_duration_seconds histogram');
    } finally {
      const closed = once(exporter, 'close');
      exporter.kill('SIGKILL');
      await closed;
    }
  });
});
