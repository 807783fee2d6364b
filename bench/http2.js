/**
 * `node bench/http2.js [--rounds 5]`: W1 from nginx over TLS, with HTTP/1.1 and with HTTP/2 in turns. Needs nginx and
 * openssl. docs/performance.md has the results.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';
import { checkZips, sha256 } from './check.js';
import { cryptodl } from './contenders.js';
import { chooseMeter, measure } from './measure.js';
import { resultsTable } from './results-table.js';
import { serveArchive } from './servers.js';
import { createWorkloads } from './workloads.js';

/** @import { Result } from './results-table.js' */

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } });
const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'cryptodl-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
process.once('SIGINT', () => process.exit(130));

const tls = { key: join(folder, 'key.pem'), certificate: join(folder, 'certificate.pem') };
const words = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout ${tls.key} -out ${tls.certificate}`;
const made = spawnSync('openssl', words.split(' '), { encoding: 'utf8' });
if (made.status !== 0) throw new Error(`openssl: ${made.stderr || made.error?.message}`);

const [w1] = createWorkloads(1);
if (w1 === undefined) throw new RangeError('there is no W1');
const archive = join(folder, 'archive');
const { keys } = makeArchive(archive, w1.archive);
const server = await serveArchive(archive, folder, tls);
if (server.name !== 'nginx') throw new Error('nginx is absent: apt install nginx');
const place = { ...server, archive, keys, files: join(folder, 'list') };
const line =
  'vision --dataset metrics --symbols all --from 2024-01-01 --to 2024-01-31 --concurrency 50 --format zip';
const trusting = `${line} --ca-file ${tls.certificate}`;
const makes = /** @type {const} */ ('zip');
const digests = new Map(keys.map((key) => [key, sha256(join(archive, key))]));
/** @type {{ contender: Result['contender'], runs: Result['runs'][number][] }[]} */
const results = [
  cryptodl(place, { id: 'a', name: 'HTTP/1.1', makes }, trusting),
  cryptodl(place, { id: 'b', name: 'HTTP/2', makes }, `${trusting} --http2`),
].map((contender) => ({ contender, runs: [] }));

const report = join(folder, 'usage');
const meter = chooseMeter(report);
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const { contender, runs } of results) {
    const cwd = join(folder, 'out');
    rmSync(cwd, { recursive: true, force: true });
    mkdirSync(cwd);
    const measured = await measure(meter, report, contender.command, {
      cwd,
      env: { PATH: process.env['PATH'] },
    });
    if (measured.exitCode !== 0) throw new Error(measured.stderr);
    const requests = contender.requests(measured);
    runs.push({ ...measured, requests, ...checkZips(cwd, digests) });
  }
}
console.log(resultsTable(results, 'a'));
process.exit();
