/**
 * `node bench/lake-scale.js [--series N] [--days N] [--rounds N] [--bin FILE]`, after a build: CPU time, wall time and memory of runs that continue a
 * lake of N series with day partitions. Nothing is new, or a few series have a new day; bench/README.md explains the output.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SETTINGS, klinesLine } from '../scripts/synthetic-lake.js';
import { daysFrom, serveEndless } from './endless.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const LEAST = fileURLToPath(new URL('lake-least.js', import.meta.url));
/** A process writes this line to stderr when it ends. */
const METER = `data:text/javascript,process.on('exit',()=>{const{user,system}=process.cpuUsage();process.stderr.write('\\nused '+JSON.stringify({cpuSeconds:(user+system)/1e6,peakMb:process.resourceUsage().maxRSS/1024})+'\\n')})`;
const INTERVAL = '1h';
const FIRST_DAY = '2023-11-01';
const DAY_MS = 86_400_000;
/** Their ETags and sizes are those of the archive, because a run compares recent objects with the listing. */
const LISTED_DAYS = 60;
/** Series that lack the last day. */
const BEHIND = 5;

const { values } = parseArgs({
  options: {
    series: { type: 'string', default: '200' },
    days: { type: 'string', default: '1095' },
    rounds: { type: 'string', default: '3' },
    bin: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const series = Number(values.series);
const days = daysFrom(FIRST_DAY, Number(values.days));
const now = new Date(Date.parse(days.at(-1) ?? '') + 1.5 * DAY_MS).toISOString();

const folder = mkdtempSync(join(values.folder, 'cryptodl-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
const archive = await serveEndless({ symbols: series, interval: INTERVAL, periods: days });
const lake = join(folder, 'lake');
const symbols = Array.from({ length: series }, (_, index) => `S${String(index).padStart(5, '0')}USDT`);
console.log(`${series} series x ${days.length} days: making ${series * days.length} files`);
for (const symbol of symbols) await makeSeries(symbol);
console.log('build        run             CPU s   wall s  peak MB  listings');
const bins = { 'this build': BIN, ...(values.bin === undefined ? {} : { '--bin': values.bin }) };
await measured('this build', BIN, 'first');
const recent = days.at(-LISTED_DAYS) ?? FIRST_DAY;
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const [name, bin] of Object.entries(bins)) await measured(name, bin, 'nothing new');
  await measured('least', LEAST, 'nothing new', [archive.url, lake, INTERVAL, recent]);
}
for (let round = 0; round < Number(values.rounds); round += 1)
  for (const [name, bin] of Object.entries(bins)) {
    for (const symbol of symbols.slice(0, BEHIND)) await makeSeries(symbol, days.slice(0, -1));
    await measured(name, bin, `${BEHIND} new days`);
  }
archive.close();

/**
 * The manifest and the data files of a series. The files are empty, and the manifest says so: a plan compares sizes.
 * @param {string} symbol
 * @param {readonly string[]} held
 */
async function makeSeries(symbol, held = days) {
  const listed = await listedObjects(symbol);
  const path = `binance/um/klines/interval=${INTERVAL}/symbol=${symbol}`;
  const data = join(lake, path);
  rmSync(data, { recursive: true, force: true });
  mkdirSync(data, { recursive: true });
  const lines = held.map((day) => {
    const key = keyOf(symbol, day);
    const file = `${day}.parquet`;
    writeFileSync(join(data, file), '');
    const settings = { ...SETTINGS, partition: 'day' };
    const facts = { key, file, settings, rows: 24, fileRows: 24, fileBytes: 0, ...listed.get(key) };
    return `${JSON.stringify(klinesLine(symbol, day, facts))}\n`;
  });
  const manifest = join(lake, '_manifests', `${path}.jsonl`);
  mkdirSync(dirname(manifest), { recursive: true });
  writeFileSync(manifest, lines.join(''));
}

/**
 * @param {string} symbol
 * @param {string} day
 */
function keyOf(symbol, day) {
  return `data/futures/um/daily/klines/${symbol}/${INTERVAL}/${symbol}-${INTERVAL}-${day}.zip`;
}

/**
 * @param {string} symbol
 * @returns {Promise<Map<string, { bytes: number, etag: string, lastModified: string }>>}
 */
async function listedObjects(symbol) {
  const prefix = `data/futures/um/daily/klines/${symbol}/${INTERVAL}/`;
  const marker = keyOf(symbol, days.at(-LISTED_DAYS) ?? FIRST_DAY);
  const answer = await fetch(`${archive.url}/?delimiter=/&prefix=${prefix}&marker=${marker}`);
  const xml = await answer.text();
  return new Map(
    [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, object = '']) => {
      const text = (/** @type {string} */ name) =>
        new RegExp(`<${name}>(.*?)</${name}>`).exec(object)?.[1] ?? '';
      const etag = text('ETag').replaceAll('&quot;', '').replaceAll('"', '');
      return [text('Key'), { bytes: Number(text('Size')), etag, lastModified: text('LastModified') }];
    }),
  );
}

/**
 * @param {string} name
 * @param {string} bin
 * @param {string} run
 * @param {readonly string[]} words
 */
async function measured(name, bin, run, words = continuing()) {
  const before = await archive.counts();
  const started = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ['--import', METER, bin, ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const wall = (performance.now() - started) / 1000;
  const used = /^used (.*)$/m.exec(stderr)?.[1];
  if (status !== 0 || used === undefined) throw new Error(`${bin} ended with ${status}\n${stderr}`);
  /** @type {{ cpuSeconds: number, peakMb: number }} */
  const { cpuSeconds, peakMb } = JSON.parse(used);
  const { zips, listings } = await archive.counts();
  const fetched = zips - before.zips;
  if (fetched !== (run.endsWith('days') ? BEHIND : 0))
    throw new Error(`${fetched} fetched objects\n${stderr}`);
  console.log(
    [
      name.padEnd(12),
      run.padEnd(12),
      cpuSeconds.toFixed(2).padStart(8),
      wall.toFixed(2).padStart(8),
      peakMb.toFixed(0).padStart(8),
      String(listings - before.listings).padStart(9),
    ].join(' '),
  );
}

function continuing() {
  const where = ['--archive-url', archive.url, '--listing-url', archive.url, '--out', lake];
  return ['vision', ...where, '--state-dir', join(folder, 'state'), '--now', now, '--progress', 'none'];
}
