/**
 * `node bench/level.js [--rounds 3] [--only constant,resets] [--objects 3100]` after `npm run build` (W8): the time of `--concurrency auto` and of
 * fixed numbers, with hosts of several kinds. A run of a fixed number is stopped after one and a half times the best time so far and
 * shown as `>`.
 */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const HOST = fileURLToPath(new URL('level-host.js', import.meta.url));
/** `busy` is the constant host while other programs keep the processors busy. */
const KINDS = [
  'constant',
  'lognormal',
  'faults',
  'doubles',
  'refuses',
  'refuses-early',
  'resets',
  'refuses-and-resets',
  'busy',
];
const FIXED = ['128', '64', '32', '16'];
const DAYS = 100;
const STOP_AT = 1.5;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: KINDS.join(',') },
    objects: { type: 'string', default: '3100' },
  },
});
const symbols = Array.from(
  { length: Math.ceil(Number(values.objects) / DAYS) },
  (_, index) => `S${index}USDT`,
);
const objects = symbols.length * DAYS;
const scratch = mkdtempSync(join(tmpdir(), 'cryptodl-level-'));
process.once('exit', () => {
  rmSync(scratch, { recursive: true, force: true });
});
process.once('SIGINT', () => process.exit(130));
const archive = join(scratch, 'archive');
makeArchive(archive, {
  market: 'um',
  dataset: 'klines',
  interval: '1h',
  cadence: 'daily',
  symbols,
  from: '2026-08-13',
  to: '2026-11-20',
});

console.log(
  `W8, ${objects} objects with sidecars, ${values.rounds} rounds; seconds, then requests per object and sidecar`,
);
console.log(
  `${'host'.padEnd(20)}${['auto', ...FIXED].map((name) => name.padStart(14)).join('')}   auto / best`,
);
for (const kind of values.only.split(',')) await compare(kind);

/** @param {string} kind */
async function compare(kind) {
  /** @type {Map<string, { seconds: number, requests: number, isStopped: boolean, ok: number }[]>} */
  const runs = new Map(['auto', ...FIXED].map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    let best = Number.POSITIVE_INFINITY;
    for (const [name, done] of runs) {
      const run = await runOnce(kind, name, name === 'auto' ? Number.POSITIVE_INFINITY : best * STOP_AT);
      if (name !== 'auto' && !run.isStopped) best = Math.min(best, run.seconds);
      done.push(run);
    }
  }
  const cells = [...runs.values()].map((done) => {
    const { seconds, requests, isStopped } = medianOf(done);
    return `${isStopped ? '>' : ''}${seconds.toFixed(1)} ${isStopped ? '    ' : requests.toFixed(2)}`.padStart(
      14,
    );
  });
  const fixed = FIXED.map((name) => medianOf(runs.get(name) ?? []));
  const auto = runs.get('auto') ?? [];
  const ratio =
    medianOf(auto).seconds / Math.min(...fixed.filter((run) => !run.isStopped).map((run) => run.seconds));
  const missing = auto.filter(({ ok }) => ok !== objects).length;
  const note = missing === 0 ? '' : `, ${missing} of ${auto.length} runs lack objects`;
  console.log(`${kind.padEnd(20)}${cells.join('')}   ${ratio.toFixed(2)}${note}`);
}

/** @template {{ seconds: number }} T @param {T[]} runs @returns {T} */
function medianOf(runs) {
  const median = runs.toSorted((a, b) => a.seconds - b.seconds)[runs.length >> 1];
  if (median === undefined) throw new RangeError('no rounds');
  return median;
}

/** @param {string} kind @param {string} concurrency @param {number} stopAfterS */
async function runOnce(kind, concurrency, stopAfterS) {
  const host = fork(HOST, [archive, kind === 'busy' ? 'constant' : kind]);
  const [{ port }] = await once(host, 'message');
  const others = kind === 'busy' ? Array.from({ length: availableParallelism() }, keepBusy) : [];
  const out = mkdtempSync(join(scratch, 'lake-'));
  const startedAt = performance.now();
  const run = spawn(
    process.execPath,
    [
      BIN,
      'vision',
      '--symbols=all',
      '--interval=1h',
      `--days=${DAYS}`,
      '--now=2026-11-21T12:00:00Z',
      `--archive-url=http://127.0.0.1:${port}`,
      `--out=${out}`,
      `--state-dir=${join(out, 'state')}`,
      `--concurrency=${concurrency}`,
      '--json',
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  let last = '';
  run.stdout.setEncoding('utf8').on('data', (text) => {
    last = (last + text).slice(-20_000);
  });
  const stop = Number.isFinite(stopAfterS)
    ? setTimeout(() => run.kill('SIGKILL'), stopAfterS * 1000)
    : undefined;
  const [, signal] = await once(run, 'close');
  clearTimeout(stop);
  const seconds = (performance.now() - startedAt) / 1000;
  for (const other of others) other.kill('SIGKILL');
  host.send('requests');
  const [{ requests }] = await once(host, 'message');
  host.kill();
  rmSync(out, { recursive: true, force: true });
  const summary = signal === null ? JSON.parse(last.trimEnd().split('\n').at(-1) ?? '{}') : undefined;
  return {
    seconds,
    requests: requests / (2 * objects),
    isStopped: signal !== null,
    ok: summary?.outcomes.ok ?? 0,
  };
}

function keepBusy() {
  return spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
}
