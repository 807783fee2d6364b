/** Checks versions, memory, open files and threads of the machine against what a run needs. */
import { arch, platform } from 'node:os';
import type { ProcessLimits } from '../model/io.js';
import { bytesText, numberText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import { checkResult, settingsResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

/** Received bodies (512 MiB at most), DuckDB (300 MB) and the process itself. */
const MEMORY_BYTES = 1e9;

/** Warns when less than 1 GB is available. */
export function checkMemory({ availableBytes, limitBytes }: ProcessLimits): CheckResult {
  const of = limitBytes === undefined ? '' : ` of the ${bytesText(limitBytes)} that this process may use`;
  const found = `${bytesText(availableBytes)} available${of}`;
  const figures = { availableBytes, ...(limitBytes === undefined ? {} : { limitBytes }) };
  if (availableBytes >= MEMORY_BYTES) return settingsResult('memory', found, [], figures);
  const issue = {
    found: `a run may use ${bytesText(MEMORY_BYTES)}`,
    next: 'end other programs or add memory; --concurrency auto:10 needs less, --format zip needs least',
  };
  return settingsResult('memory', found, [issue], figures);
}

export interface FilesInput {
  readonly openFiles: ProcessLimits['openFiles'];
  /** Objects in flight at most. */
  readonly most: number;
  /** Most sockets of the run. */
  readonly sockets: number;
}

/** Streams, libraries, lock, journal, output files, and the sockets of the listing. */
const BASE_FILES = 72;
/** Two sockets (zip and sidecar) and two files (a large object spools its zip and its CSV). */
const FILES_PER_OBJECT = 4;

/** Every socket counts as an open file. */
export function checkFiles({ openFiles, most, sockets }: FilesInput): CheckResult {
  const needed = BASE_FILES + Math.min(sockets, most * 2) + most * 2;
  const figures = { needed, ...(openFiles === undefined ? {} : { openFiles }) };
  if (openFiles === undefined)
    return settingsResult('files', `a run opens up to ${numberText(needed)}`, [], figures);
  const found = `${numberText(openFiles)} allowed, a run opens up to ${numberText(needed)}`;
  if (openFiles >= needed) return settingsResult('files', found, [], figures);
  const fits = Math.floor((openFiles - BASE_FILES) / FILES_PER_OBJECT);
  const fewer = fits < 1 ? '' : `, or --concurrency auto:${fits}`;
  const issue = {
    found: 'a run fails when it needs more',
    next: `allow ${needed} (ulimit -n ${needed}, LimitNOFILE=${needed} in a systemd unit)${fewer}`,
  };
  return settingsResult('files', found, [issue], figures);
}

/** Inflating, hashing and file access share these threads. */
const LEAST_THREADS = 4;

/** `given` is the value of UV_THREADPOOL_SIZE. */
export function checkThreads(given: string | undefined): CheckResult {
  const threads = Number(given ?? LEAST_THREADS);
  const found = `${given ?? LEAST_THREADS} in the pool (UV_THREADPOOL_SIZE)`;
  if (threads >= LEAST_THREADS) return settingsResult('threads', found, [], { threads });
  const issue = {
    found: 'with so few threads, unpacking and writing wait for each other',
    next: 'unset UV_THREADPOOL_SIZE',
  };
  return settingsResult('threads', found, [issue], {});
}

/** The same as `engines` in package.json. */
const LEAST_NODE = [20, 18, 1] as const;

/** Fails when Node is too old or DuckDB cannot be loaded. */
export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<CheckResult> {
  const system = `${platform()} ${arch()}`;
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${system}`;
  const figures = { cryptodl: TOOL_VERSION, node: process.versions.node, system };
  const [least, mine] = [LEAST_NODE, process.versions.node.split('.').map(Number)];
  const at = least.findIndex((part, index) => part !== mine[index]);
  if (at >= 0 && (mine[at] ?? 0) < (least[at] ?? 0))
    return checkResult('versions', 'fail', base, {
      figures,
      next: `install node ${least.join('.')} or newer`,
    });
  try {
    const duckdb = await duckdbVersion();
    return checkResult('versions', 'ok', `${base}, DuckDB ${duckdb}`, { figures: { ...figures, duckdb } });
  } catch (error) {
    const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return checkResult('versions', 'fail', `${base}; DuckDB cannot be loaded: ${message}`, {
      figures,
      next: 'install cryptodl again on this machine: npm install (DuckDB has a separate package for each system)',
    });
  }
}
