/** Whether this process may have the memory, the open files and the threads that a run needs. */
import { arch, platform } from 'node:os';
import type { ProcessLimits } from '../model/io.js';
import { bytesText, numberText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import { finding, judged } from './finding.js';
import type { Finding } from './finding.js';

/** Received bodies (512 MiB at most), DuckDB (300 MB) and the process itself. */
const MEMORY_BYTES = 1e9;

export function checkMemory({ availableBytes, limitBytes }: ProcessLimits): Finding {
  const of = limitBytes === undefined ? '' : ` of the ${bytesText(limitBytes)} that this process may have`;
  const found = `${bytesText(availableBytes)} available${of}`;
  const figures = { availableBytes, ...(limitBytes === undefined ? {} : { limitBytes }) };
  if (availableBytes >= MEMORY_BYTES) return judged('memory', found, [], figures);
  const issue = {
    found: `a run may take ${bytesText(MEMORY_BYTES)}`,
    next: 'end other programs or give more memory; --concurrency auto:10 takes less, and --format zip least',
  };
  return judged('memory', found, [issue], figures);
}

export interface FilesQuestion {
  readonly openFiles: ProcessLimits['openFiles'];
  /** Objects in flight at most. */
  readonly most: number;
  /** Most sockets of the run. */
  readonly sockets: number;
}

/** Streams, libraries, lock, journal, what writers have open, and the sockets of the listing. */
const BASE_FILES = 72;
/** Two sockets, for zip and sidecar; a large object has its zip and its CSV on the disk. */
const FILES_PER_OBJECT = 4;

/** Every socket is an open file as well. */
export function checkFiles({ openFiles, most, sockets }: FilesQuestion): Finding {
  const needed = BASE_FILES + Math.min(sockets, most * 2) + most * 2;
  const figures = { needed, ...(openFiles === undefined ? {} : { openFiles }) };
  if (openFiles === undefined)
    return judged('files', `a run has up to ${numberText(needed)} open`, [], figures);
  const found = `${numberText(openFiles)} may be open, a run has up to ${numberText(needed)}`;
  if (openFiles >= needed) return judged('files', found, [], figures);
  const fits = Math.floor((openFiles - BASE_FILES) / FILES_PER_OBJECT);
  const fewer = fits < 1 ? '' : `, or --concurrency auto:${fits}`;
  const issue = {
    found: 'a run that needs more of them fails',
    next: `allow ${needed} (ulimit -n ${needed}, LimitNOFILE=${needed} in a systemd unit)${fewer}`,
  };
  return judged('files', found, [issue], figures);
}

/** Inflating, hashing and DuckDB share them. */
const LEAST_THREADS = 4;

/** `given`: UV_THREADPOOL_SIZE. */
export function checkThreads(given: string | undefined): Finding {
  const threads = Number(given ?? LEAST_THREADS);
  const found = `${given ?? LEAST_THREADS} in the pool (UV_THREADPOOL_SIZE)`;
  if (threads >= LEAST_THREADS) return judged('threads', found, [], { threads });
  const issue = { found: 'unpacking and writing wait for each other', next: 'unset UV_THREADPOOL_SIZE' };
  return judged('threads', found, [issue], {});
}

/** As package.json has it under `engines`. */
const LEAST_NODE = [20, 18, 1] as const;

export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<Finding> {
  const system = `${platform()} ${arch()}`;
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${system}`;
  const figures = { cryptodl: TOOL_VERSION, node: process.versions.node, system };
  const [least, mine] = [LEAST_NODE, process.versions.node.split('.').map(Number)];
  const at = least.findIndex((part, index) => part !== mine[index]);
  if (at >= 0 && (mine[at] ?? 0) < (least[at] ?? 0))
    return finding('versions', 'fail', base, { figures, next: `install node ${least.join('.')} or newer` });
  try {
    const duckdb = await duckdbVersion();
    return finding('versions', 'ok', `${base}, DuckDB ${duckdb}`, { figures: { ...figures, duckdb } });
  } catch (error) {
    const said = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    return finding('versions', 'fail', `${base}; DuckDB cannot be loaded: ${said}`, {
      figures,
      next: 'install anew for this machine: npm install (DuckDB has a package of its own for each system)',
    });
  }
}
