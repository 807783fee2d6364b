/** `--alert-webhook` through the program. test/unit/run/webhook.test.ts has its retries and time limit. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { TOOL_VERSION } from '../../src/model/version.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import { cryptodl } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { isZip, useScene } from '../helpers/scene.js';

const SCENE = {
  archive: [{ from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --days 3 --retries 0',
};
const scene = useScene(SCENE);
/** For runs that wait for receivers. */
const timeless = useScene({ ...SCENE, isTimeVirtual: true });

interface Posted {
  readonly line: string;
  readonly type: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A receiver that answers with these statuses, and with the last one from then on. */
async function receiver(...statuses: number[]) {
  const posts: Posted[] = [];
  const server = createServer(answering(posts, statuses));
  // Connections end only by the program.
  server.keepAliveTimeout = 0;
  return { posts, server, url: `http://${await listening(server)}/secret?id=1` };
}

/** Resolves with the host and port. */
async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answering(posts: Posted[], statuses: readonly number[]): RequestListener {
  return (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url, headers } = request;
      const text = Buffer.concat(chunks).toString('utf8');
      const type = headers['content-type'];
      const body = (type === 'application/json' ? JSON.parse(text) : {}) as Record<string, unknown>;
      posts.push({ line: `${method} ${url}`, type, body });
      response.writeHead(statuses[posts.length - 1] ?? statuses.at(-1) ?? 200).end('ok');
    });
  };
}

const warnings = (stderr: string): string[] => stderr.match(/^warning: .*$/gm) ?? [];

describe('a failed run', () => {
  it('is posted with its counts, until the receiver accepts it', async () => {
    const { url, posts } = await receiver(503, 429, 204);
    timeless.refuse(isZip, 403);
    const { code, stderr, lake } = await timeless.vision(['--alert-webhook', url]);
    expect([code, warnings(stderr)]).toEqual([4, []]);
    expect(posts.map(({ line, type }) => [line, type])).toEqual(
      Array.from({ length: 3 }, () => ['POST /secret?id=1', 'application/json']),
    );
    expect(posts[2]?.body).toEqual({
      verdict: {
        state: 'incomplete',
        exitCode: 3,
        text: 'incomplete: 1 of 1 series lack 1 day',
        next: 'cryptodl vision',
        series: 1,
        lacking: 1,
      },
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
    const late = ['--now', '2026-11-25T00:00:00Z', '--days', '6'];
    const first = await scene.vision(['--alert-webhook', url, ...late]);
    expect(posts[0]?.body['alerts']).toEqual([
      {
        id: 'not-fresh',
        text: expect.stringContaining('um klines is not fresh'),
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

  it('is posted after a signal', async () => {
    const { url, posts } = await receiver(200);
    const { code } = await scene.vision(['--alert-webhook', url], {
      onSpawn: (child) => {
        let kill = (): unknown => child.kill('SIGTERM');
        scene.answer(isZip, () => {
          kill();
          // A second signal would end the process at once.
          kill = () => undefined;
        });
      },
    });
    expect([code, posts.map(({ body }) => body['exitCode'])]).toEqual([143, [143]]);
  });

  it.skipIf(!HAS_OPENSSL)('is posted to a receiver with a certificate of --ca-file', async () => {
    const certificate = makeCertificate(scene.newFolder(), 'receiver', { names: 'IP:127.0.0.1', days: 2 });
    const posts: Posted[] = [];
    const server = createSecureServer(certificate, answering(posts, [200]));
    const url = `https://${await listening(server)}/`;
    scene.refuse(isZip, 403);
    const flags = ['--alert-webhook', url, '--ping', url, '--ca-file', certificate.file];
    const { stderr } = await scene.vision(flags);
    expect(warnings(stderr)).toEqual([]);
    expect(posts.map(({ line }) => line).sort()).toEqual(['GET /start', 'POST /', 'POST /fail']);
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
    const refused = await timeless.vision([...flags, url]);
    expect([refused.code, posts.length, warnings(refused.stderr)]).toEqual([
      0,
      1,
      [`warning: --alert-webhook: ${new URL(url).host} answered 404`],
    ]);
    const absent = await timeless.vision([...flags, 'http://127.0.0.1:9/secret']);
    expect([absent.code, warnings(absent.stderr).length]).toEqual([0, 1]);
    expect(absent.stderr).not.toContain('secret');
  });
});

describe('the addresses of --ping and --alert-webhook', () => {
  const addresses =
    '--ping http://127.0.0.1:9/secret-uuid --alert-webhook http://127.0.0.1:9/T0/secret?k=secret'.split(' ');

  it('are in no output of a run, and in no file that it writes', async () => {
    timeless.refuse(isZip, 403);
    const folder = timeless.newFolder();
    const files = ['--log-file', 'log.jsonl', '--prometheus-textfile', 'x.prom']
      .concat('--debug-dump', 'dump.json')
      .map((word) => (word.startsWith('--') ? word : join(folder, word)));
    const proxy = ['--proxy', 'http://me:secret@127.0.0.1:9'];
    const run = await timeless.vision([...addresses, ...files, ...proxy, '--log-level', 'debug'], {
      lake: 'private',
      env: { NO_PROXY: '127.0.0.1' },
    });
    const json = await timeless.vision([...addresses, '--json'], { lake: 'private' });
    const [failures = ''] = readdirSync(join(run.lake, '_failures'));
    const report = join(folder, 'report.html');
    const commands = [
      ['retry', join(run.lake, '_failures', failures), ...addresses.slice(0, 2)],
      ['report', '--out', run.lake, '--html', report],
      ['runs', '--out', run.lake, '--json'],
      ['vision', '--symbols', 'BTCUSDT', ...addresses, '--print-options'],
    ];
    const results = [run, json];
    for (const words of commands)
      results.push({ ...run, ...(await cryptodl(words, { clock: timeless.virtual })) });
    expect(results.map(({ code }) => code)).toEqual([4, 4, 4, 0, 0, 0]);
    expect(warnings(run.stderr).length).toBe(2);
    const texts = results.flatMap(({ stdout, stderr }) => [stdout, stderr]);
    const written = [run.lake, folder].flatMap((root) => filesBelow(root).map((path) => join(root, path)));
    expect(written.length).toBeGreaterThan(8);
    texts.push(...written.map((path) => readFileSync(path, 'utf8')));
    expect(texts.filter((text) => text.includes('secret'))).toEqual([]);
    expect(results.at(-1)?.stdout).toMatch(/^ping +\(not shown; host 127.0.0.1:9\) {2}\(flag\)$/m);
  });

  it.each<[string, string[], string]>([
    ['a mistyped flag', ['vision', '--formt', 'zip', ...addresses], 'vision has no flag --formt'],
    [
      'another protocol',
      ['vision', '--ping', 'ftp://h/secret'],
      '--ping (not shown; host h) is not an http(s) address',
    ],
    ['no protocol', ['vision', '--ping', 'h/secret'], '--ping (not shown) is not an http(s) address'],
    [
      'a user',
      ['vision', '--ping', 'http://u:p@h/secret'],
      '--ping (not shown; host h) is not an http(s) address without user name',
    ],
    [
      'a user, no protocol',
      ['vision', '--alert-webhook', 'u:secret@h'],
      '--alert-webhook (not shown) is not an http(s) address without user name',
    ],
    ['a flag of a job', ['run', 'jobs.yaml', ...addresses.slice(0, 2)], 'run has no flag --ping'],
  ])('are in no error: %s', async (_, words, text) => {
    const operands = words[0] === 'run' ? [] : ['--symbols', 'BTCUSDT'];
    const { code, stderr } = await cryptodl([...words, ...operands]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
    expect(stderr).not.toContain('secret');
  });

  it('are in the lines of schedule, which work', async () => {
    const words = ['vision', '--symbols', 'BTCUSDT', '--days', '3', ...addresses];
    const { code, stdout } = await cryptodl(['schedule', '--', ...words]);
    expect([code, stdout.match(/--ping http:\/\/127.0.0.1:9\/secret-uuid /g)?.length]).toEqual([0, 2]);
  });
});
