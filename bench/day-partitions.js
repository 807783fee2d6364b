/**
 * `node bench/day-partitions.js [--days N] [--rounds N] [--bin FILE]`, after a build: CPU time of one run that writes N day
 * partitions of one series, and of a second run that skips them all; with `--bin` in turns with another build.
 * bench/README.md explains the output.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const SERVER = new URL('../dist/verbs/serve/serve.js', import.meta.url).href;
/** A process writes this line to stderr when it ends. */
const METER = `data:text/javascript,process.on('exit',()=>{const{user,system}=process.cpuUsage();process.stderr.write('\\nused '+JSON.stringify({cpuSeconds:(user+system)/1e6,peakMb:process.resourceUsage().maxRSS/1024})+'\\n')})`;
const DAY_MS = 86_400_000;
const FIRST_DAY = '2018-01-01';

const { values } = parseArgs({
  options: {
    days: { type: 'string', default: '3000' },
    rounds: { type: 'string', default: '1' },
    bin: { type: 'string' },
  },
});

const scratch = mkdtempSync(join(tmpdir(), 'cryptodl-bench-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const to = new Date(Date.parse(FIRST_DAY) + (Number(values.days) - 1) * DAY_MS).toISOString().slice(0, 10);
const archive = join(scratch, 'archive');
const series = /** @type {const} */ ({
  market: 'spot',
  dataset: 'klines',
  interval: '1d',
  symbols: ['BTCUSDT'],
});
makeArchive(archive, { ...series, cadence: 'daily', from: FIRST_DAY, to });
const server = new Worker(
  `import('${SERVER}').then(({ archiveHandler }) => import('node:http').then(({ createServer }) => {
    const server = createServer(archiveHandler(${JSON.stringify(archive)}));
    server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port));
  }))`,
  { eval: true },
);
const port = await new Promise((resolve) => server.once('message', resolve));
const contenders = { 'this build': BIN, ...(values.bin === undefined ? {} : { '--bin': values.bin }) };
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const [name, bin] of Object.entries(contenders)) {
    const out = mkdtempSync(join(scratch, 'lake-'));
    console.log(`${name.padEnd(11)} ${values.days} new    ${measured(bin, out)}`);
    console.log(`${name.padEnd(11)} ${values.days} held   ${measured(bin, out)}`);
  }
}
await server.terminate();

/**
 * @param {string} bin
 * @param {string} out
 */
function measured(bin, out) {
  const what = ['--market', 'spot', '--interval', '1d', '--symbols', 'BTCUSDT', '--partition', 'day'];
  const range = ['--cadence', 'daily', '--from', FIRST_DAY, '--to', to, '--progress', 'none'];
  const where = [
    '--archive-url',
    `http://127.0.0.1:${port}`,
    '--out',
    out,
    '--state-dir',
    join(out, 'state'),
  ];
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', METER, bin, 'vision', ...what, ...range, ...where],
    { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const used = /^used (.*)$/m.exec(stderr)?.[1];
  if (status !== 0 || used === undefined) throw new Error(`${bin} ended with ${status}\n${stderr}`);
  /** @type {{ cpuSeconds: number, peakMb: number }} */
  const { cpuSeconds, peakMb } = JSON.parse(used);
  return `${cpuSeconds.toFixed(1)} s CPU  peak ${peakMb.toFixed(0)} MB`;
}
