/** `--alert-webhook` through the program. test/unit/webhook.test.ts has its retries and time limit. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TOOL_VERSION } from '../../src/model/version.js';
import { cryptodl } from '../helpers/cli.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --days 3 --retries 0',
});

interface Posted {
  readonly line: string;
  readonly type: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A receiver that answers with these statuses, and with the last one from then on. */
async function receiver(...statuses: number[]) {
  const posts: Posted[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      const text = Buffer.concat(chunks).toString('utf8');
      const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
      posts.push({ line: `${method} ${url}`, type: headers['content-type'], body });
      response.writeHead(statuses[posts.length - 1] ?? statuses.at(-1) ?? 200).end('ok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { posts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret?id=1` };
}

const warnings = (stderr: string): string[] => stderr.match(/^warning: .*$/gm) ?? [];

describe('a failed run', () => {
  it('is posted with its counts, until the receiver accepts it', async () => {
    const { url, posts } = await receiver(503, 429, 204);
    scene.refuse(isZip, 403);
    const { code, stderr, lake } = await scene.vision(['--alert-webhook', url]);
    expect([code, warnings(stderr)]).toEqual([4, []]);
    expect(posts.map(({ line, type }) => [line, type])).toEqual(
      Array.from({ length: 3 }, () => ['POST /secret?id=1', 'application/json']),
    );
    expect(posts[2]?.body).toEqual({
      tool: 'cryptodl',
      version: TOOL_VERSION,
      at: expect.stringMatching(/^\d{4}-.*Z$/),
      lake: basename(lake),
      verb: 'vision',
      job: null,
      exitCode: 4,
      error: null,
      alerts: [],
      summary: expect.objectContaining({
        outcomes: { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 3 },
        failed: { 'http-forbidden': 3 },
        retries: 0,
      }),
    });
  });

  it('is posted with its alerts and without a path; the address is in no record and no report', async () => {
    const { url, posts } = await receiver(200);
    scene.refuse(isZip, 403);
    const lake = 'alerted';
    const first = await scene.vision(['--alert-webhook', url], { lake });
    await scene.vision(['--alert-webhook', url], { lake });
    expect(posts[1]?.body['alerts']).toEqual([
      {
        id: 'failed-again',
        text: expect.stringContaining('in two runs in a row'),
        advice: expect.stringContaining('cryptodl doctor checks'),
      },
    ]);
    expect(JSON.stringify(posts)).not.toContain(scene.scratch);
    for (const folder of ['.cryptodl/runs', '_failures'].map((name) => join(first.lake, name)))
      for (const name of readdirSync(folder))
        expect(readFileSync(join(folder, name), 'utf8')).not.toContain('secret');
  });

  it('is posted with its error if it could not begin', async () => {
    const { url, posts } = await receiver(200);
    const { code } = await scene.vision(['--alert-webhook', url, '--symbols', 'NOPEUSDT']);
    expect([code, posts.length]).toEqual([2, 1]);
    expect(posts[0]?.body).toMatchObject({ exitCode: 2, error: 'usage', alerts: [], summary: null });
  });

  it('is posted with the name of its job', async () => {
    const { url, posts } = await receiver(200);
    scene.refuse(isZip, 403);
    const out = scene.newFolder();
    const jobs = join(out, 'jobs.json');
    const job = { verb: 'vision', symbols: 'BTCUSDT', interval: '1h', days: 2, 'alert-webhook': url };
    const places = { out, 'archive-url': scene.archive.url, now: scene.now, retries: 0 };
    writeFileSync(jobs, JSON.stringify({ defaults: places, jobs: { bars: job } }));
    const result = await cryptodl(['run', jobs]);
    expect([result.code, result.stderr.includes('--alert-webhook')]).toEqual([4, false]);
    expect(posts.map(({ body }) => [body['verb'], body['job']])).toEqual([['vision', 'bars']]);
  });
});

describe('a run with exit code 0', () => {
  it('is posted only if it has an alert, and a plan never', async () => {
    const { url, posts } = await receiver(200);
    await scene.vision(['--alert-webhook', url]);
    await scene.vision(['--alert-webhook', url, '--dry-run', '--now', '2026-11-25T00:00:00Z']);
    expect(posts).toEqual([]);
    const late = await scene.vision(['--alert-webhook', url, '--now', '2026-11-25T00:00:00Z', '--days', '6']);
    expect([late.code, posts.length]).toEqual([0, 1]);
    expect(posts[0]?.body).toMatchObject({ exitCode: 0, alerts: [{ id: 'not-fresh' }] });
  });

  it('keeps its exit code if the message does not arrive; that is one warning', async () => {
    const { url, posts } = await receiver(404);
    const flags = ['--now', '2026-11-25T00:00:00Z', '--days', '6', '--alert-webhook'];
    const refused = await scene.vision([...flags, url]);
    expect([refused.code, posts.length, warnings(refused.stderr)]).toEqual([
      0,
      1,
      [`warning: --alert-webhook: ${new URL(url).host} answered 404`],
    ]);
    const absent = await scene.vision([...flags, 'http://127.0.0.1:9/secret']);
    expect([absent.code, warnings(absent.stderr).length]).toEqual([0, 1]);
    expect(absent.stderr).not.toContain('secret');
  });
});
