/** The functions of the library on a lake in a bucket. */
import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { coverage, CryptodlError, repair, sql, verify, vision } from '../../src/library.js';
import type { RunHooks, VisionOptions } from '../../src/library.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { scratchFolder } from '../helpers/folders.js';
import { S3Server } from '../helpers/s3-server.js';

const scratch = scratchFolder();
let archive: TestArchive;
let server: S3Server;
let temp = '';
let lakes = 0;
let out = '';

beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT', 'ETHUSDT'],
    from: '2026-11-10',
    to: '2026-11-20',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
  server = await new S3Server({ region: 'eu-west-3' }).listen();
});
afterAll(async () => {
  await archive.close();
  await server.close();
});
beforeEach(() => {
  lakes += 1;
  out = `s3://lake/lakes/${lakes}`;
  temp = mkdtempSync(join(scratch, 'temp-'));
  // Without a setting of AWS in the environment of the test.
  for (const name of Object.keys(process.env).filter((each) => each.startsWith('AWS_')))
    vi.stubEnv(name, undefined);
  vi.stubEnv('HOME', scratch);
  vi.stubEnv('TMPDIR', temp);
});
afterEach(() => {
  vi.unstubAllEnvs();
  server.fault = undefined;
});

const lake = (): { out: string; s3Endpoint: string; s3Region: string } => ({
  out,
  s3Endpoint: server.url,
  s3Region: 'eu-west-3',
});

const options = (more: VisionOptions = {}): VisionOptions => ({
  market: 'um',
  interval: '1h',
  symbols: ['BTCUSDT', 'ETHUSDT'],
  days: 3,
  now: '2026-11-21T12:00:00Z',
  archiveUrl: archive.url,
  retries: 1,
  retryDelay: 2,
  retryMaxDelay: 2,
  breakerOpen: '100ms',
  maxWait: '20s',
  ...lake(),
  ...more,
});

function keys(): RunHooks {
  const { accessKeyId, secretAccessKey } = server.options;
  return { s3Credentials: { accessKeyId, secretAccessKey } };
}

async function refusal(act: () => Promise<unknown>): Promise<CryptodlError> {
  const error: unknown = await act().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CryptodlError)) throw new Error('no error of the library', { cause: error });
  return error;
}

const mirrors = (): string[] => readdirSync(temp);

describe('a lake in a bucket', () => {
  it('is written and read by the functions, which name it by its address', async () => {
    archive.fault = (path, _, response) => {
      if (!/ETHUSDT.*11-19/.test(path)) return false;
      response.writeHead(500).end();
      return true;
    };
    const warnings: string[] = [];
    const run = vision(options({ retries: 0 }), {
      ...keys(),
      onWarning: (message) => warnings.push(message),
    });
    const outcomes = await run.toArray();
    const { failures, exitCode, rows } = await run.summary();
    archive.fault = undefined;
    expect([outcomes.length, rows, exitCode]).toEqual([6, 120, 3]);
    expect(failures).toMatch(new RegExp(`^${out}/_failures/vision-.*\\.jsonl$`));
    expect(server.objects.has((failures ?? '').slice('s3://lake/'.length))).toBe(true);
    const covered = await coverage(lake(), keys()).toArray();
    expect(covered.map(({ symbol, held }) => [symbol, held])).toEqual([
      ['BTCUSDT', 72],
      ['ETHUSDT', 48],
    ]);
    const query = 'SELECT symbol, count(*) AS bars FROM um_klines GROUP BY symbol ORDER BY symbol';
    expect(await sql(query, lake(), keys()).toArray()).toEqual([
      { symbol: 'BTCUSDT', bars: 72n },
      { symbol: 'ETHUSDT', bars: 48n },
    ]);
    expect((await verify(lake(), keys()).summary()).findings).toEqual({});
    const path = `lakes/${lakes}/binance/um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet`;
    server.store(path, 'damaged');
    const findings = await verify({ ...lake(), fix: true }, keys()).toArray();
    expect(findings.map(({ kind }) => kind)).toContain('damaged');
    expect(JSON.stringify([findings, warnings, outcomes])).not.toContain(temp);
    const { market: _, interval: __, symbols: ___, days: ____, ...more } = options();
    expect((await repair(more, keys()).summary()).outcomes.ok).toBe(4);
    expect(await sql(query, lake(), keys()).toArray()).toContainEqual({ symbol: 'BTCUSDT', bars: 72n });
    expect(mirrors()).toEqual([]);
  });

  it('has its credentials from the places in which the tools of AWS look, or from a function', async () => {
    for (const [name, value] of Object.entries(server.environment)) vi.stubEnv(name, value);
    const { s3Endpoint: _, s3Region: __, ...more } = options({ days: 1 });
    expect((await vision(more).summary()).outcomes.ok).toBe(2);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'wrong-secret-access-key');
    const { accessKeyId, secretAccessKey } = server.options;
    const s3Credentials = (): Promise<{ accessKeyId: string; secretAccessKey: string; expiration: Date }> =>
      Promise.resolve({ accessKeyId, secretAccessKey, expiration: new Date(Date.now() + 3_600_000) });
    expect((await vision(options({ days: 1 }), { s3Credentials }).summary()).outcomes.skipped).toBe(2);
  });

  it.each<[string, unknown, string]>([
    [
      'a wrong key',
      { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'not-the-secret-key' },
      'SignatureDoesNotMatch',
    ],
    ['a function that rejects', () => Promise.reject(new Error('no vault')), 'were found: no vault'],
  ])('is refused with %s', async (_, s3Credentials, message) => {
    const hooks = { s3Credentials } as RunHooks;
    const error = await refusal(() => vision(options(), hooks).summary());
    expect(error).toMatchObject({
      code: 'lake-refused',
      message: expect.stringContaining(message) as string,
    });
    expect(JSON.stringify([error.message, error.hint])).not.toContain('not-the-secret-key');
    expect(await refusal(() => coverage(lake(), hooks).toArray())).toMatchObject({ code: 'lake-refused' });
    expect(mirrors()).toEqual([]);
  });

  it('has the files that were written before the caller left the loop, and no mirror is left', async () => {
    const begun = vision(options({ concurrency: '1', partition: 'day' }), keys());
    for await (const { outcome } of begun) {
      expect(outcome).toBe('ok');
      break;
    }
    expect(mirrors()).toEqual([]);
    const files = [...server.objects.keys()].filter((key) => key.startsWith(`lakes/${lakes}/binance/`));
    expect(files.length).toBeGreaterThan(0);
    for await (const _ of coverage(lake(), keys())) break;
    for await (const _ of sql('SELECT * FROM um_klines', lake(), keys())) break;
    expect(mirrors()).toEqual([]);
    const { outcomes } = await vision(options({ partition: 'day' }), keys()).summary();
    expect(outcomes.ok + outcomes.skipped).toBe(6);
    expect((await verify({ ...lake(), deep: true }, keys()).summary()).findings).toEqual({});
  });

  it('rejects the summary if the last files of a run cannot be published', async () => {
    server.fault = ({ method, key }) =>
      method === 'PUT' && key.includes('/.cryptodl/runs/')
        ? { status: 403, code: 'AccessDenied' }
        : undefined;
    const error = await refusal(() => vision(options(), keys()).summary());
    expect(error).toMatchObject({ code: 'lake-refused', exitCode: 1 });
    expect(error.message).toContain(out);
    expect(mirrors()).toEqual([]);
  });
});
