/** Checks versions, memory, open files, threads and waits. */
import { arch, platform } from 'node:os';
import { toCryptodlError } from '../model/errors.js';
import type { ProcessLimits } from '../model/io.js';
import { bytesText, durationText, numberText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import type { Options } from '../options/flags.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

/** Memory of a run: received bodies (512 MiB at most), DuckDB (300 MB) and the process itself. */
const MEMORY_BYTES = 1e9;

/** Warns when less than 1 GB is available. */
export function checkMemory({ availableBytes, limitBytes }: ProcessLimits): CheckResult {
  const of = limitBytes === undefined ? '' : ` of the ${bytesText(limitBytes)} that this process may use`;
  const found = `${bytesText(availableBytes)} available${of}`;
  const figures = { availableBytes, ...(limitBytes === undefined ? {} : { limitBytes }) };
  if (availableBytes >= MEMORY_BYTES) return checkResult('memory', 'ok', found, { figures });
  return checkResult('memory', 'warn', `${found}; a run may use ${bytesText(MEMORY_BYTES)}`, {
    figures,
    next: 'end other programs or add memory; --concurrency auto:10 needs less, --format zip needs least',
  });
}

export interface FilesInput {
  readonly openFiles: ProcessLimits['openFiles'];
  /** Objects in flight at most. */
  readonly most: number;
  /** Most sockets to one host. */
  readonly sockets: number;
}

/** Open files of a run without its objects: streams, libraries, lock, journal, output files, and the sockets of the listing. */
const BASE_FILES = 72;
/** Open files of an object in flight: two sockets (zip and sidecar) and two spool files (zip and CSV of a large object). */
const FILES_PER_OBJECT = 4;

/** Warns when a run may need more open files than the process may have. Every socket counts as an open file. */
export function checkFiles({ openFiles, most, sockets }: FilesInput): CheckResult {
  const needed = BASE_FILES + Math.min(sockets, most * 2) + most * 2;
  const figures = { needed, ...(openFiles === undefined ? {} : { openFiles }) };
  if (openFiles === undefined)
    return checkResult('files', 'ok', `a run opens up to ${numberText(needed)}`, { figures });
  const found = `${numberText(openFiles)} allowed, a run opens up to ${numberText(needed)}`;
  if (openFiles >= needed) return checkResult('files', 'ok', found, { figures });
  const fits = Math.floor((openFiles - BASE_FILES) / FILES_PER_OBJECT);
  const fewer = fits < 1 ? '' : `, or --concurrency auto:${fits}`;
  return checkResult('files', 'warn', `${found} and fails when it needs more`, {
    figures,
    next: `allow ${needed} (ulimit -n ${needed}, LimitNOFILE=${needed} in a systemd unit)${fewer}`,
  });
}

/** Inflating, hashing and file access share these threads. */
const LEAST_THREADS = 4;

/** Warns about a pool of less than 4 threads. `given`: the value of UV_THREADPOOL_SIZE. */
export function checkThreads(given: string | undefined): CheckResult {
  const threads = Number(given ?? LEAST_THREADS);
  const found = `${given ?? LEAST_THREADS} in the pool (UV_THREADPOOL_SIZE)`;
  if (threads >= LEAST_THREADS) return checkResult('threads', 'ok', found, { figures: { threads } });
  return checkResult('threads', 'warn', `${found}; unpacking and writing wait for each other`, {
    next: 'unset UV_THREADPOOL_SIZE',
  });
}

/** Warns about pauses of a host that are longer than `--max-wait`, because objects then fail without a further request. */
export function checkWaits(
  options: Pick<Options, 'breakerOpenMs' | 'blockedWaitMs' | 'maxWaitMs'>,
): CheckResult {
  const { breakerOpenMs, blockedWaitMs, maxWaitMs } = options;
  const longest = durationText(maxWaitMs);
  const flags = [
    ...(breakerOpenMs > maxWaitMs ? ['--breaker-open'] : []),
    ...(blockedWaitMs > maxWaitMs ? ['--blocked-wait'] : []),
  ];
  if (flags.length === 0) return checkResult('waits', 'ok', `up to ${longest} for a limit or a failing host`);
  const found = `longer than --max-wait ${longest}: objects fail before the next request to a failing host`;
  return checkResult('waits', 'warn', `${flags.join(' and ')} ${found}`, { next: 'use a longer --max-wait' });
}

/** The same as `engines` in package.json. */
const LEAST_NODE = [20, 18, 1] as const;

/** Fails when Node is too old or DuckDB cannot be loaded. */
export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<CheckResult> {
  const system = `${platform()} ${arch()}`;
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${system}`;
  const figures = { cryptodl: TOOL_VERSION, node: process.versions.node, system };
  const [least, running] = [LEAST_NODE, process.versions.node.split('.').map(Number)];
  const at = least.findIndex((part, index) => part !== running[index]);
  if (at >= 0 && (running[at] ?? 0) < (least[at] ?? 0))
    return checkResult('versions', 'fail', base, {
      figures,
      next: `install node ${least.join('.')} or newer`,
    });
  try {
    const duckdb = await duckdbVersion();
    return checkResult('versions', 'ok', `${base}, DuckDB ${duckdb}`, { figures: { ...figures, duckdb } });
  } catch (error) {
    const { message, hint } = toCryptodlError(error);
    return checkResult('versions', 'fail', `${base}; ${message}`, { figures, next: hint ?? '' });
  }
}
