/** Checks versions, memory, open files, threads and the clock of the machine. */
import { arch, platform } from 'node:os';
import { toCryptodlError } from '../model/errors.js';
import type { ProcessLimits } from '../model/io.js';
import { bytesText, durationText, numberText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import { checkResult, settingsResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

/** Memory of a run: received bodies (512 MiB at most), DuckDB (300 MB) and the process itself. */
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

/** Warns about a pool of less than 4 threads. `given`: the value of UV_THREADPOOL_SIZE. */
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

// The clock, compared with the `Date` headers of the hosts.

/** The `Date` header of one response, with its sending and receiving time by the local clock. Epoch milliseconds. */
export interface ServerDate {
  readonly host: string;
  readonly dateMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A `Date` header has whole seconds (RFC 9110, section 5.6.7). */
const SECOND_MS = 1000;
const WARN_MS = 1000;
const FAIL_MS = 60_000;

const WHY =
  'set the clock, for example with timedatectl set-ntp true: "today", publication times and the validity of certificates depend on it';

/** Warns when the clock differs by more than a second from every host; fails from a minute on. */
export function checkClock(dates: readonly ServerDate[]): CheckResult {
  const differences = [...new Set(dates.map(({ host }) => host))].map((host) => ({
    host,
    ms: differenceOf(dates.filter((answer) => answer.host === host)),
  }));
  const [first, ...others] = [...differences].sort((a, b) => Math.abs(a.ms) - Math.abs(b.ms));
  if (first === undefined)
    return checkResult('clock', 'warn', 'unknown: no host sent a Date header', {
      next: 'see the lines above',
    });
  const differenceMs = Math.round(first.ms);
  const figures = { host: first.host, differenceMs };
  const aheadOr = first.ms > 0 ? 'behind' : 'ahead of';
  const found = `${durationText(Math.abs(first.ms))} ${aheadOr} that of ${first.host}`;
  if (Math.abs(first.ms) > FAIL_MS) return checkResult('clock', 'fail', found, { figures, next: WHY });
  if (Math.abs(first.ms) > WARN_MS) return checkResult('clock', 'warn', found, { figures, next: WHY });
  // When one host agrees with the local clock, another host that differs is probably wrong.
  const deviating = others.findLast(({ ms }) => Math.abs(ms) > FAIL_MS);
  if (deviating === undefined)
    return checkResult('clock', 'ok', `within ${durationText(WARN_MS)} of that of ${first.host}`, {
      figures,
    });
  return checkResult(
    'clock',
    'warn',
    `equal to that of ${first.host}, but ${deviating.host} differs by ${durationText(Math.abs(deviating.ms))}`,
    { figures, next: 'check for a cache or proxy in front of that host that serves old responses' },
  );
}

/** The least difference (host minus local, in ms) that explains all responses; 0 when the clocks may be equal. */
function differenceOf(dates: readonly ServerDate[]): number {
  const least = Math.max(...dates.map(({ dateMs, receivedAt }) => dateMs - receivedAt));
  const most = Math.min(...dates.map(({ dateMs, sentAt }) => dateMs + SECOND_MS - sentAt));
  if (least > 0) return least;
  return most < 0 ? most : 0;
}
