/** Checks versions, memory and open files. */
import { arch, platform } from 'node:os';
import { toCryptodlError } from '../model/errors.js';
import type { ProcessLimits } from '../model/io.js';
import { bytesText, numberText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
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

/** Fails when DuckDB cannot be loaded. The entry of the program refuses an older Node. */
export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<CheckResult> {
  const system = `${platform()} ${arch()}`;
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${system}`;
  const figures = { cryptodl: TOOL_VERSION, node: process.versions.node, system };
  try {
    const duckdb = await duckdbVersion();
    return checkResult('versions', 'ok', `${base}, DuckDB ${duckdb}`, { figures: { ...figures, duckdb } });
  } catch (error) {
    const { message, hint } = toCryptodlError(error);
    return checkResult('versions', 'fail', `${base}; ${message}`, { figures, next: hint ?? '' });
  }
}
