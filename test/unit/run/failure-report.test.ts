import { VERBS } from '../../../src/main.js';
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pastRun, readReport } from '../../../src/run/failures/select-failures.js';
import { stagedBeside } from '../../../src/files/temp-files.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { readFailureReport } from '../../../src/run/failures/read-failure-report.js';
import { FailureFile } from '../../../src/run/failures/failure-file.js';
import type { FailureReport } from '../../../src/run/failures/failure-file.js';
import type { PartitionPlan, SourceObject } from '../../../src/model/task.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { period, SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const scratch = scratchFolder();
const AT = '2024-02-02T00:00:00.000Z';
const HEADER = {
  verb: 'vision' as const,
  tool: '0.1.0',
  at: AT,
  options: { symbols: ['BTCUSDT', '!币*'] },
};

const SERIES = { market: 'um', dataset: 'klines', interval: '1m', symbol: '币安人生USDT' } as const;
const PLAN: PartitionPlan = { series: SERIES, settings: SETTINGS, label: '2024-01', tasks: [] };

function objectOf(label: string): SourceObject {
  return { key: `${label}.zip`, period: period(label) };
}

async function newPath(): Promise<string> {
  return join(await mkdtemp(join(scratch, 'run-')), 'failures', 'vision.jsonl');
}

function open(path: string, mode: 'new' | 'overwrite' | 'replace' = 'overwrite'): FailureReport {
  return new FailureFile({ path, header: HEADER, mode });
}

async function begun(): Promise<{ path: string; report: FailureReport }> {
  const path = await newPath();
  return { path, report: open(path) };
}

const ERROR = new CryptodlError('checksum-mismatch', 'expected "a"\n got b', { attempts: 3 });

describe('a report', () => {
  it('has the details of each failure, and can be read back', async () => {
    const { path, report } = await begun();
    await report.add(PLAN, objectOf('2024-01-15'), ERROR, AT);
    await report.add(PLAN, objectOf('2024-01'), new CryptodlError('zip-broken', 'no'), AT);
    expect(await report.close(true)).toBe(path);
    const { header, entries } = await readFailureReport(path);
    expect(header).toEqual({ v: 1, kind: 'header', ...HEADER });
    expect(entries[0]).toEqual({
      line: 2,
      v: 1,
      kind: 'failed',
      ...SERIES,
      cadence: 'daily',
      period: '2024-01-15',
      key: '2024-01-15.zip',
      code: 'checksum-mismatch',
      retryable: true,
      attempts: 3,
      message: 'expected "a"\n got b',
      at: AT,
      settings: SETTINGS,
    });
    expect(entries[1]).toMatchObject({
      cadence: 'monthly',
      period: '2024-01',
      code: 'zip-broken',
      retryable: false,
    });
  });

  it('is written as failures happen', async () => {
    const { path, report } = await begun();
    await report.add(PLAN, objectOf('2024-01-15'), ERROR, AT);
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(3);
    await report.close(true);
  });

  it('keeps its lines whole when failures come at once', async () => {
    const { path, report } = await begun();
    const labels = Array.from({ length: 28 }, (_, index) => `2024-01-${String(index + 1).padStart(2, '0')}`);
    await Promise.all(labels.map((label) => report.add(PLAN, objectOf(label), ERROR, AT)));
    await report.close(true);
    const { entries } = await readFailureReport(path);
    expect(entries.map((entry) => entry.period)).toEqual(labels);
  });

  it('is not made when nothing failed', async () => {
    const { path, report } = await begun();
    expect(await report.close(true)).toBeUndefined();
    expect(existsSync(path)).toBe(false);
  });
});

/** A report of one failure. */
async function earlier(): Promise<string> {
  const { path, report } = await begun();
  await report.add(PLAN, objectOf('2024-01-15'), ERROR, AT);
  await report.close(true);
  return path;
}

it('a new report never takes the place of an earlier one', async () => {
  const path = await earlier();
  const report = open(path, 'new');
  await expect(report.add(PLAN, objectOf('2024-01-31'), ERROR, AT)).rejects.toThrow('EEXIST');
  expect((await readFailureReport(path)).entries[0]?.period).toBe('2024-01-15');
});

it('a report of an earlier run is removed by a run without failures that names it', async () => {
  const path = await earlier();
  expect([await open(path).close(true), existsSync(path)]).toEqual([undefined, false]);
});

it('the lake of a report overrides that of the environment', () => {
  const layers = (['flag', 'environment'] as const).map((origin) => ({
    origin,
    values: origin === 'flag' ? {} : { out: ['/other'] },
    nameOf: (name: string) => name,
  }));
  const options = { out: ['/lake'] };
  const header = { v: 1, kind: 'header', verb: 'vision', tool: '', at: '', options } as const;
  const report = { path: 'report', file: undefined, header, entries: [], cut: undefined };
  const { resolved } = pastRun(report, layers, { verbs: VERBS, exchange: loadBinance() });
  expect(resolved.options.out).toBe('/lake');
});

it('a retry treats revised objects as the run that it repeats', () => {
  const options = { revisions: ['take'] };
  const header = { v: 1, kind: 'header', verb: 'vision', tool: '', at: '', options } as const;
  const report = { path: 'report', file: undefined, header, entries: [], cut: undefined };
  const { resolved } = pastRun(report, [], { verbs: VERBS, exchange: loadBinance() });
  expect(resolved.options.revisions).toBe('take');
});

describe('a report that replaces an earlier one', () => {
  it('is removed when everything succeeded, with what a killed retry has left beside it', async () => {
    const path = await earlier();
    // No process has this number.
    copyFileSync(path, (await stagedBeside(path)).replace(`.${process.pid}.`, '.4194305.'));
    expect([await open(path, 'replace').close(false), existsSync(path)]).toEqual([path, true]);
    expect(await open(path, 'replace').close(true)).toBeUndefined();
    expect(readdirSync(dirname(path))).toEqual([]);
  });

  it('leaves the earlier one until its run has reached its end', async () => {
    const path = await earlier();
    const report = open(path, 'replace');
    await report.add(PLAN, objectOf('2024-01-31'), ERROR, AT);
    expect((await readFailureReport(path)).entries[0]?.period).toBe('2024-01-15');
    await report.close(true);
    expect((await readFailureReport(path)).entries.map((entry) => entry.period)).toEqual(['2024-01-31']);
  });

  it('leaves it for good when the run was cut short, and nothing beside it', async () => {
    const path = await earlier();
    const report = open(path, 'replace');
    await report.add(PLAN, objectOf('2024-01-31'), ERROR, AT);
    expect(await report.close(false)).toBe(path);
    expect((await readFailureReport(path)).entries[0]?.period).toBe('2024-01-15');
    expect(readdirSync(dirname(path))).toEqual([basename(path)]);
  });
});

describe('reading', () => {
  const header = JSON.stringify({ v: 1, kind: 'header', ...HEADER });

  it('tells of a last line that was not written to its end', async () => {
    const path = join(scratch, 'torn.jsonl');
    writeFileSync(path, `${header}\n{"v":1,"kind":"fai`);
    expect(await readFailureReport(path)).toMatchObject({
      entries: [],
      cut: 2,
    });
  });

  it('takes a last line without a line end, and passes over blank lines', async () => {
    const path = await earlier();
    const [first = '', failure = ''] = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, `\n${first}\r\n\n  \n${failure}`);
    expect(await readFailureReport(path)).toMatchObject({
      entries: [{ line: 5, period: '2024-01-15' }],
      cut: undefined,
    });
  });

  it.each([
    ['an empty file', '', 'its first line is not a header'],
    ['another file', '{"a":1}\n', 'its first line is not a header'],
    [
      'a report of another version',
      header.replace('"v":1', '"v":2') + '\n',
      'its first line is not a header',
    ],
    ['text', 'hello\n', 'line 1 is not JSON'],
    ['a damaged line', `${header}\n{"v":1\n`, 'line 2 is not JSON'],
    ['a line that is no failure', `${header}\n{"v":1,"kind":"failed"}\n`, 'line 2 is not a failure'],
  ])('refuses %s, and says where', async (_, content, text) => {
    const path = join(scratch, 'refused.jsonl');
    writeFileSync(path, content);
    await expect(readFailureReport(path)).rejects.toMatchObject({ code: 'usage' });
    await expect(readFailureReport(path)).rejects.toThrow(`${path} `);
    await expect(readFailureReport(path)).rejects.toThrow(text);
  });

  it('is not retried when a failure has a market that the exchange does not have', async () => {
    const { path, report } = await begun();
    await report.add({ ...PLAN, series: { ...SERIES, market: '../um' } }, objectOf('2024-01-15'), ERROR, AT);
    await report.close(true);
    await expect(readReport(path, loadBinance())).rejects.toThrow(
      'line 2 is not a failure ("../um" is not one of',
    );
  });
});
