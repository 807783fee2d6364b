/** The verbs of the library find what the commands print, and print nothing. */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import {
  audit,
  coverage,
  CryptodlError,
  list,
  metrics,
  repair,
  sql,
  verify,
  vision,
} from '../../src/library.js';
import type { ItemsWithSummary } from '../../src/library.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, parquetDigests } from '../helpers/lake.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import { RestVenue } from '../helpers/rest-venue.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';
const scratch = scratchFolder();
const lake = join(scratch, 'lake');
const MARKET = { market: 'um', dataset: 'klines', interval: '1h' } as const;
const BARS = { ...MARKET, symbols: ['BTCUSDT', 'ETHUSDT'] } as const;
let archive: TestArchive;

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  makeArchive(folder, { ...BARS, from: '2026-10-01', to: '2026-11-20', cadence: 'daily' });
  makeArchive(folder, { ...BARS, from: '2026-10-01', to: '2026-10-31', cadence: 'monthly' });
  archive = await startArchive(folder);
  await fetch(lake);
});
afterAll(() => archive.close());

const hosts = (): { readonly archiveUrl: string; readonly now: string } => ({
  archiveUrl: archive.url,
  now: NOW,
});

function fetch(out: string): Promise<unknown> {
  return vision({ ...BARS, ...hosts(), out, days: 3 }).summary();
}

/** The NDJSON of a command. */
async function printed(...args: readonly string[]): Promise<readonly unknown[]> {
  const fast = args[0] === 'coverage' ? [] : FAST.slice(0, -2);
  return (await cryptodl([...args, '--json', '--now', NOW, ...fast])).events;
}

async function refusal(act: () => unknown): Promise<unknown> {
  try {
    await act();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('list', () => {
  it.each([
    ['markets', {}, []],
    ['datasets', { market: 'cm' }, ['--market', 'cm']],
    ['symbols', { ...MARKET, quote: 'USDT' }, ['--interval', '1h', '--quote', 'USDT']],
    ['symbols', { ...MARKET, long: true }, ['--interval', '1h', '--long']],
    [
      'periods',
      { ...MARKET, symbols: 'BTCUSDT', from: '2026-10-30', to: '2026-11-02' },
      ['--interval', '1h', '--symbols', 'BTCUSDT', '--from', '2026-10-30', '--to', '2026-11-02'],
    ],
  ] as const)('%s with %j gives the items of the command', async (what, options, flags) => {
    const items = await list(what, { ...options, archiveUrl: archive.url, now: NOW }).toArray();
    expect(items).toEqual(await printed('list', what, ...flags, '--archive-url', archive.url));
    expect(items.length).toBeGreaterThan(1);
  });
});

describe('verify and repair', () => {
  const damaged = join(scratch, 'damaged');
  beforeAll(async () => {
    await fetch(damaged);
    const [first = '', second = ''] = filesBelow(damaged, '.parquet');
    appendFileSync(join(damaged, first), 'x');
    rmSync(join(damaged, second));
  });

  it('verify gives the findings and the summary of the command', async () => {
    const found = verify({ out: damaged });
    const findings = await found.toArray();
    const lines = await printed('verify', '--out', damaged);
    expect(findings.map((finding) => ({ event: 'finding', ...finding }))).toEqual(lines.slice(0, -1));
    expect({ event: 'summary', ...(await found.summary()) }).toEqual(lines.at(-1));
    expect(findings.map(({ kind }) => kind).sort()).toEqual(['damaged', 'missing']);
    expect(await found.summary()).toMatchObject({ series: 2, exitCode: 4 });
  });

  it('repair fetches the data again', async () => {
    const outcomes = await repair({ out: damaged, ...hosts() }).toArray();
    expect(outcomes.filter(({ outcome }) => outcome === 'ok')).toHaveLength(6);
    expect(await parquetDigests(damaged)).toEqual(await parquetDigests(lake));
    expect(await verify({ out: damaged }).summary()).toMatchObject({ findings: {}, exitCode: 0 });
  });
});

describe('sql', () => {
  it('gives rows with the names of the columns, integers as bigint and times as text', async () => {
    const query =
      'SELECT symbol, count(*) AS bars, min(open_time) AS first, avg(close) AS mean FROM um_klines GROUP BY symbol ORDER BY 1';
    const rows = await sql(query, { out: lake }).toArray();
    expect(rows).toMatchObject([
      { symbol: 'BTCUSDT', bars: 72n, first: '2026-11-18T00:00:00.000000Z' },
      { symbol: 'ETHUSDT', bars: 72n, first: '2026-11-18T00:00:00.000000Z' },
    ]);
    const lines = await cryptodl(['sql', query, '--json', '--out', lake]);
    expect(rows.map((row) => ({ ...row, bars: Number(row['bars']) }))).toEqual(lines.events);
  });

  it('a large result is read in parts, and the caller may stop', async () => {
    let read = 0;
    for await (const { i } of sql('SELECT i FROM range(50000000) AS numbers(i)', { out: lake })) {
      expect(i).toBe(BigInt(read));
      read += 1;
      if (read === 5000) break;
    }
    expect(read).toBe(5000);
  });

  it('a query leaves the temporary files of another query of this process alone', async () => {
    const tempDir = join(scratch, 'spill');
    const other = join(tempDir, `cryptodl-sql-${process.pid}`);
    mkdirSync(other, { recursive: true });
    writeFileSync(join(other, 'spilled.tmp'), '');
    const queries = [1, 2].map(() =>
      sql('SELECT count(*) AS n FROM um_klines', { out: lake, tempDir }).toArray(),
    );
    expect(await Promise.all(queries)).toEqual([[{ n: 144n }], [{ n: 144n }]]);
    expect(filesBelow(tempDir, '')).toHaveLength(1);
  });
});

it('metrics downloads over REST', async () => {
  const venue = new RestVenue({ now: () => Date.parse(NOW), symbols: [{ host: 'fapi', symbol: 'BTCUSDT' }] });
  const served = await serveVenue(venue);
  const run = metrics({
    symbols: 'BTCUSDT',
    dataset: 'fundingRate',
    days: 2,
    out: join(scratch, 'metrics'),
    ...hosts(),
    fapiUrl: served.urlOf('fapi'),
  });
  const outcomes = await run.toArray();
  await served.close();
  expect(outcomes.map(({ dataset, outcome }) => `${dataset} ${outcome}`)).toContain('fundingRate ok');
  expect(await run.summary()).toMatchObject({ exitCode: 0, failures: null });
});

describe('a copied lake', () => {
  const SERIES = 'binance/um/klines/interval=1h';
  const counted = 'SELECT symbol, count(*) AS n FROM um_klines GROUP BY ALL ORDER BY ALL';
  const BOTH = [
    { symbol: 'BTCUSDT', n: 72n },
    { symbol: 'ETHUSDT', n: 72n },
  ];

  it('inside a lake is no part of it: it is not read, and its files are unlisted', async () => {
    const out = join(scratch, 'outer');
    cpSync(lake, out, { recursive: true });
    const inner = [`${SERIES}/symbol=BTCUSDT/lake`, 'binance/um/lake', 'inner'].map((place) =>
      join(out, place),
    );
    for (const place of inner) cpSync(lake, place, { recursive: true });
    expect((await coverage({ out, now: NOW }).toArray()).map(({ symbol }) => symbol)).toEqual([
      'BTCUSDT',
      'ETHUSDT',
    ]);
    expect(await sql(counted, { out }).toArray()).toEqual(BOTH);
    const found = verify({ out });
    expect(new Set((await found.toArray()).map(({ kind }) => kind))).toEqual(new Set(['unlisted']));
    expect(await found.summary()).toMatchObject({ series: 2, files: 2, exitCode: 4 });
    // Files below the data of the exchange go to the quarantine; a lake beside the data stays.
    const foreign = filesBelow(inner[0] ?? '').length + filesBelow(inner[1] ?? '').length;
    const repaired = await repair({ out, ...hosts() }).summary();
    expect([repaired.outcomes.ok, repaired.exitCode]).toEqual([0, 0]);
    expect(filesBelow(join(out, '_quarantine')).filter((path) => !path.endsWith('.cause'))).toHaveLength(
      foreign,
    );
    expect(await parquetDigests(join(out, 'inner'))).toEqual(await parquetDigests(lake));
    expect(await sql(counted, { out }).toArray()).toEqual(BOTH);
  });

  it('whose names have another case is another series, and no row of it counts', async () => {
    const out = join(scratch, 'lower');
    cpSync(lake, out, { recursive: true });
    renameSync(join(out, SERIES, 'symbol=BTCUSDT'), join(out, SERIES, 'symbol=btcusdt'));
    const manifests = join(out, '_manifests', SERIES);
    renameSync(join(manifests, 'symbol=BTCUSDT.jsonl'), join(manifests, 'symbol=btcusdt.jsonl'));
    const findings = await verify({ out }).toArray();
    expect(findings.map(({ kind, path }) => `${kind} ${path.split('=').at(-1) ?? ''}`)).toEqual([
      ...Array.from({ length: 3 }, () => 'line-damaged btcusdt.jsonl'),
      'unlisted btcusdt/2026-11.parquet',
    ]);
    const covered = coverage({ out, now: NOW });
    // Of the ordered series, the lake has nothing.
    expect((await covered.toArray()).map(({ symbol, held }) => [symbol, held === 0])).toEqual([
      ['BTCUSDT', true],
      ['ETHUSDT', false],
    ]);
    expect(await covered.summary()).toMatchObject({ exitCode: 1, refused: { length: 3 } });
    expect(await refusal(() => sql(counted, { out }).toArray())).toMatchObject({
      code: 'manifest-damaged',
      exitCode: 1,
    });
    expect(await refusal(() => vision({ ...hosts(), out }).summary())).toMatchObject({
      code: 'manifest-damaged',
      exitCode: 1,
    });
    await verify({ out, fix: true }).summary();
    expect(await coverage({ out, now: NOW }).summary()).toMatchObject({ exitCode: 0, refused: [] });
    expect(await sql(counted, { out }).toArray()).toEqual(BOTH.slice(1));
  });
});

/** The names in backquotes of a sentence of docs/library.md, without what stands in parentheses. */
function namesIn(section: string, begin: string): string[] {
  const [, part = ''] = DOCUMENT.split(new RegExp(`^## ${section}`, 'm'));
  const [text = ''] = part.split(/^## /m);
  const [, sentence = ''] = text.split(begin);
  const [words = ''] = sentence
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?\([^)]*\)/g, '')
    .split(/[.;:] |\.$/);
  return [...words.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
}

/** The names in the first column of the table of fields in a section. */
function fieldsOf(section: string): string[] {
  const [, part = ''] = DOCUMENT.split(new RegExp(`^## ${section}`, 'm'));
  const [text = ''] = part.split(/^## /m);
  const [, table = ''] = text.split(/^\| field .*\n.*\n/m);
  const cells = table.split('\n').map((row) => /^\| (.*?) *\|/.exec(row)?.[1] ?? '');
  return cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
}

const DOCUMENT = readFileSync(join(ROOT, 'docs/library.md'), 'utf8');

describe('the fields that docs/library.md names', () => {
  const october = { from: '2026-10-01', to: '2026-10-31' };

  it.each<[string, () => ItemsWithSummary<object, object>, readonly string[]]>([
    [
      'vision',
      () => vision({ ...BARS, ...hosts(), out: join(scratch, 'fields'), days: 1 }),
      ['Each item is the outcome of one object: ', 'With `ok` and `partial`, it also has'],
    ],
    ['coverage', () => coverage({ out: lake, now: NOW }), []],
    ['verify', () => verify({ out: harmed() }), ['A finding has', 'often']],
    [
      'audit',
      () => audit({ ...BARS, ...hosts(), ...october }),
      ['A `finding` has the fields of its series,'],
    ],
  ])('are in the items and the summary of %s', async (section, call, sentences) => {
    const found = call();
    const [item = {}] = await found.toArray();
    const documented = [...sentences.flatMap((begin) => namesIn(section, begin)), ...fieldsOf(section)];
    expect(documented.length).toBeGreaterThan(4);
    expect(Object.keys(item)).toEqual(expect.arrayContaining(documented.filter((name) => !VALUES.has(name))));
    // The summary of an audit is that of its command.
    const names =
      section === 'audit' ? ['months', 'compared', 'exitCode'] : namesIn(section, 'The summary has');
    expect(names.length).toBeGreaterThan(2);
    expect(Object.keys(await found.summary())).toEqual(expect.arrayContaining(names));
  });

  function harmed(): string {
    const out = join(scratch, 'harmed');
    cpSync(lake, out, { recursive: true });
    appendFileSync(join(out, filesBelow(out, '.parquet')[0] ?? ''), 'x');
    return out;
  }

  /** Values and units of fields. */
  const VALUES: ReadonlySet<string> = new Set(['rows', 'days']);

  it('are those of list', async () => {
    const rows = [...DOCUMENT.matchAll(/^\| `list\('(\w+)'\)` +\| (.*?) *\|$/gm)];
    expect(rows).toHaveLength(4);
    for (const [, what, text = ''] of rows) {
      const options = { ...MARKET, ...hosts(), symbols: 'BTCUSDT', long: true };
      const chosen = what === 'markets' || what === 'datasets' ? {} : options;
      const [item = {}] = await list(what as 'symbols', chosen).toArray();
      const names = [...text.replace(/ It needs.*/, '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
      // The item of --long has all that the sentence names.
      expect([what, Object.keys(item).toSorted()]).toEqual([what, names.toSorted()]);
    }
  });
});

describe('a call', () => {
  it('rejects with the code and the exit code of the command, and may succeed later', async () => {
    const out = join(scratch, 'two at once');
    const calls = [1, 2].map(() => vision({ ...BARS, ...hosts(), out, days: 2 }).summary());
    const [, refused] = (await Promise.allSettled(calls)).toSorted((a, b) => (a.status < b.status ? -1 : 1));
    const reason: unknown = refused?.status === 'rejected' ? refused.reason : undefined;
    expect(reason).toBeInstanceOf(CryptodlError);
    expect(reason).toMatchObject({ code: 'locked', exitCode: 6, retryable: true });
    const nowhere = { archiveUrl: 'http://127.0.0.1:1', now: NOW, retries: 0, maxWait: 0 };
    const unreachable = await refusal(() => list('symbols', { ...MARKET, ...nowhere }).toArray());
    expect(unreachable).toMatchObject({
      name: 'CryptodlError',
      code: 'unreachable',
      exitCode: 1,
      retryable: true,
    });
    expect(await refusal(() => list('periods', hosts()).toArray())).toMatchObject({ retryable: false });
  });

  it.each([
    [
      () => vision({ fix: true } as object),
      'vision has no option "fix"',
      'docs/library.md describes the options',
    ],
    [() => verify({ symbol: 'X' } as object), 'verify has no option "symbol"', 'did you mean symbols?'],
    [
      () => list('markets', [] as object),
      'list takes an object of options',
      "for example list(what, { out: 'data' }, { signal })",
    ],
    [
      () => sql(7 as never),
      'sql takes a query and an object of options',
      expect.stringMatching(/^for example sql\(query, /),
    ],
    [
      () => verify({}, { onPlan: () => undefined } as object),
      'verify has no hook "onPlan"',
      'hooks are signal, onWarning, s3Credentials',
    ],
    [
      () => sql('SELECT 1', {}, 7 as never),
      'the last argument of sql must be an object of hooks',
      'hooks are signal, onWarning, s3Credentials',
    ],
  ])('with wrong arguments is refused at once (%#)', async (act, message, hint) => {
    const error = await refusal(act);
    expect(error).toBeInstanceOf(CryptodlError);
    expect(error).toMatchObject({ code: 'usage', exitCode: 2, message, hint });
  });

  it('can be read once, and its summary is known after the last item', async () => {
    const found = verify({ out: lake });
    const early = found[Symbol.asyncIterator]();
    await early.next();
    expect(await found.summary()).toMatchObject({ exitCode: 0 });
    expect(await refusal(() => found.toArray())).toMatchObject({
      message: 'the items of a call can be read only once',
    });
    const left = list('datasets');
    for await (const _ of left) break;
    expect(await refusal(() => left.toArray())).toMatchObject({ code: 'usage' });
  });

  it('ends by its signal with the code interrupted', async () => {
    const signal = AbortSignal.abort();
    const bars = { ...BARS, ...hosts(), out: join(scratch, 'aborted'), days: 1 };
    for (const act of [
      () => vision(bars, { signal }).toArray(),
      () => vision(bars, { signal }).summary(),
      () => metrics({ symbols: 'BTCUSDT', days: 1, out: bars.out, ...hosts() }, { signal }).toArray(),
      () => coverage({ out: lake, now: NOW }, { signal }).toArray(),
      () => coverage({ out: lake, now: NOW }, { signal }).summary(),
      () => audit({ ...BARS, ...hosts(), months: 1 }, { signal }).toArray(),
      () => verify({ out: lake }, { signal }).toArray(),
      () => sql('SELECT 1', { out: lake }, { signal }).toArray(),
      () => list('symbols', { ...MARKET, ...hosts() }, { signal }).toArray(),
      () => repair({ out: lake, ...hosts() }, { signal }).toArray(),
    ])
      expect([String(act), await refusal(act)]).toMatchObject([
        String(act),
        { name: 'CryptodlError', code: 'interrupted', retryable: true },
      ]);
    const stop = new AbortController();
    const rows = sql('SELECT i FROM range(50000000) AS numbers(i)', { out: lake }, { signal: stop.signal });
    const read = async (): Promise<void> => {
      for await (const _ of rows) stop.abort();
    };
    expect(await refusal(read)).toMatchObject({ code: 'interrupted' });
  });

  it('prints nothing, listens to no signal and lets the process end', async () => {
    const folder = join(scratch, 'silent');
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(folder, 'node_modules/cryptodl'));
    const bars = JSON.stringify({ ...BARS, ...hosts(), out: 'lake', days: 1 });
    writeFileSync(
      join(folder, 'calls.mjs'),
      `import { audit, list, repair, sql, verify, vision } from 'cryptodl';
      const bars = ${bars};
      const { archiveUrl, now, out } = bars;
      const calls = [
        () => vision(bars), () => repair({ archiveUrl, now, out }), () => verify({ out, deep: true }),
        () => list('datasets', { market: 'um' }), () => sql('FROM um_klines', { out }),
        () => audit({ ...bars, days: undefined, from: '2026-10-01', to: '2026-10-31' }),
      ];
      for (const call of calls) {
        for await (const _ of call())
          if (process.listenerCount('SIGINT') + process.listenerCount('SIGTERM') > 0) process.exitCode = 1;
      }
      await vision({ ...bars, symbols: 'NOSUCHUSDT' }).toArray().then(() => { process.exitCode = 2; }, () => undefined);
      `,
    );
    const child = spawn(process.execPath, ['calls.mjs'], { cwd: folder });
    const said: string[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => said.push(String(data)));
    const code = await new Promise((resolve) => {
      child.on('close', resolve);
    });
    expect([said.join(''), code]).toEqual(['', 0]);
  });
});
