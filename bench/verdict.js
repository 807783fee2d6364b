/**
 * `node bench/verdict.js [--series N] [--days N] [--rounds N] [--bin FILE] [--folder FOLDER] [--months]`, after a build: wall time, CPU time and memory of
 * `cryptodl check` for a lake of N series, half of them with month partitions and half with day partitions, each day an object. With `--months`, all are bars, and each month
 * before the last one is an object, as a first run gets them. bench/README.md explains the output.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SETTINGS, klinesFolder, klinesLine, writeManifest } from '../scripts/synthetic-lake.js';
import { daysFrom } from './endless.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
/** A process writes this line to stderr when it ends. */
const METER = `data:text/javascript,process.on('exit',()=>{const{user,system}=process.cpuUsage();process.stderr.write('\\nused '+JSON.stringify({cpuSeconds:(user+system)/1e6,peakMb:process.resourceUsage().maxRSS/1024})+'\\n')})`;
const FIRST_DAY = '2023-11-01';
const DAY_MS = 86_400_000;

const { values } = parseArgs({
  options: {
    series: { type: 'string', default: '500' },
    days: { type: 'string', default: '1095' },
    rounds: { type: 'string', default: '5' },
    bin: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    months: { type: 'boolean', default: false },
  },
});
const days = daysFrom(FIRST_DAY, Number(values.days));
const last = days.at(-1) ?? FIRST_DAY;
const now = new Date(Date.parse(last) + 2.5 * DAY_MS).toISOString();
const lake = mkdtempSync(join(values.folder, 'cryptodl-bench-'));
process.on('exit', () => rmSync(lake, { recursive: true, force: true }));
const half = Math.ceil(Number(values.series) / 2);
makeBars('B');
if (values.months) makeBars('C');
else makeTrades();
console.log(`${2 * half} series × ${days.length} days`);
console.log('build        verb          CPU s   wall s  peak MB');
const bins = { 'this build': BIN, ...(values.bin === undefined ? {} : { '--bin': values.bin }) };
for (let round = 0; round < Number(values.rounds); round += 1)
  for (const [name, bin] of Object.entries(bins)) {
    measured(name, bin, 'check', 'check');
    measured(name, bin, 'coverage', 'coverage');
  }

/** @param {string} letter */
function makeBars(letter) {
  const symbols = symbolsOf(letter);
  const objects = values.months ? monthsAndDays() : days;
  for (const symbol of symbols)
    writeManifest(
      klinesFolder(lake, symbol),
      objects.map((period) => barsLine(symbol, period)),
    );
  writeOrder(letter === 'B' ? '0' : '2', { dataset: 'klines', interval: '1m', symbols, settings: SETTINGS });
}

/** The months that are over, and the days of the last one. */
function monthsAndDays() {
  const month = last.slice(0, 7);
  return [...new Set(days.map((day) => (day < month ? day.slice(0, 7) : day)))];
}

/**
 * @param {string} symbol
 * @param {string} period a day or a month
 */
function barsLine(symbol, period) {
  if (period.length > 7) return klinesLine(symbol, period);
  const end = days.findLast((day) => day.startsWith(period)) ?? '';
  const line = klinesLine(symbol, end);
  const rows = 1440 * Number(end.slice(8));
  const key = `data/futures/um/monthly/klines/${symbol}/1m/${symbol}-1m-${period}.zip`;
  return { ...line, key, cadence: 'monthly', period, rows, first: `${period}-01T00:00:00.000Z` };
}

function makeTrades() {
  const symbols = symbolsOf('T');
  const settings = { ...SETTINGS, partition: 'day' };
  for (const symbol of symbols)
    writeManifest(
      join(lake, 'binance', 'um', 'aggTrades', `symbol=${symbol}`),
      days.map((day) =>
        klinesLine(symbol, day, {
          key: `data/futures/um/daily/aggTrades/${symbol}/${symbol}-aggTrades-${day}.zip`,
          file: `${day}.parquet`,
          settings,
          rows: 86_400,
          first: `${day}T00:00:00.123Z`,
          last: `${day}T23:59:59.456Z`,
        }),
      ),
    );
  writeOrder('1', { dataset: 'aggTrades', symbols, settings });
}

/** @param {string} letter */
function symbolsOf(letter) {
  return Array.from({ length: half }, (_, index) => `${letter}${String(index).padStart(4, '0')}USDT`);
}

/**
 * @param {string} digit
 * @param {{ dataset: string, interval?: string, symbols: string[], settings: object }} terms
 */
function writeOrder(digit, { symbols, ...terms }) {
  const folder = join(lake, '.cryptodl', 'orders');
  mkdirSync(folder, { recursive: true });
  const id = digit.repeat(16);
  const market = { v: 1, id, verb: 'vision', exchange: 'binance', market: 'um', quote: [], last: null };
  const order = {
    ...market,
    ...terms,
    words: symbols,
    symbols,
    first: FIRST_DAY,
    at: `${FIRST_DAY}T00:00:00.000Z`,
  };
  writeFileSync(join(folder, `${id}.json`), `${JSON.stringify(order)}\n`);
}

/**
 * @param {string} name
 * @param {string} bin
 * @param {string} verb
 * @param {string} title
 */
function measured(name, bin, verb, title) {
  const started = performance.now();
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ['--import', METER, bin, verb, '--out', lake, '--now', now],
    { encoding: 'utf8', maxBuffer: 1e9 },
  );
  const wall = (performance.now() - started) / 1000;
  const used = /^used (.*)$/m.exec(stderr)?.[1];
  if (status !== 0 || used === undefined)
    throw new Error(`${bin} ended with ${status}\n${stdout.slice(0, 2000)}\n${stderr}`);
  /** @type {{ cpuSeconds: number, peakMb: number }} */
  const { cpuSeconds, peakMb } = JSON.parse(used);
  console.log(
    [
      name.padEnd(12),
      title.padEnd(11),
      cpuSeconds.toFixed(2).padStart(7),
      wall.toFixed(2).padStart(8),
      peakMb.toFixed(0).padStart(8),
    ].join(' '),
  );
}
