/** Checks versions, memory and open files, and the server of `--redis`. */
import { arch, platform } from 'node:os';
import { toCryptodlError } from '../model/errors.js';
import { BASE_FILES, withinOpenFiles } from '../model/machine.js';
import { bytesText, countText, numberText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';
import type { Clock } from '../model/clock.js';
import type { EgressGroup } from '../http/throttle/group.js';
import { connectRedis } from '../redis/connection.js';
import { shownRedis } from '../redis/redis-errors.js';

/** Memory of a run: received bodies (512 MiB at most), DuckDB (300 MB) and the process itself. */
const MEMORY_BYTES = 1e9;

/** Warns when less than 1 GB is available. `limitBytes`: the memory of the machine, or the limit of the container. */
export function checkMemory(freeBytes: number, limitBytes: number): CheckResult {
  const availableBytes = Math.min(freeBytes, limitBytes);
  const found = `${bytesText(availableBytes)} available of ${bytesText(limitBytes)}`;
  if (availableBytes >= MEMORY_BYTES) return checkResult('memory', 'ok', found);
  return checkResult('memory', 'warn', `${found}; a run may use ${bytesText(MEMORY_BYTES)}`, {
    next: 'end other programs or add memory; --concurrency auto:10 needs less, --format zip needs least',
  });
}

export interface FilesInput {
  readonly openFiles: number | undefined;
  /** Objects in flight at most, if enough files may be open. */
  readonly most: number;
  /** Most sockets to one host. */
  readonly sockets: number;
}

/** Warns when a run may need more open files than the process may have. Every socket counts as an open file. */
export function checkFiles({ openFiles, most, sockets }: FilesInput): CheckResult {
  const needed = BASE_FILES + Math.min(sockets, most * 2) + most * 2;
  if (openFiles === undefined) return checkResult('files', 'ok', `a run opens up to ${numberText(needed)}`);
  const found = `${numberText(openFiles)} allowed, a run opens up to ${numberText(needed)}`;
  if (openFiles >= needed) return checkResult('files', 'ok', found);
  const fewer = countText(withinOpenFiles(most, openFiles), 'object');
  return checkResult('files', 'warn', `${found}; with fewer it has ${fewer} in flight`, {
    next: `allow ${needed} (ulimit -n ${needed}, LimitNOFILE=${needed} in a systemd unit)`,
  });
}

/** Fails when DuckDB cannot be loaded. The entry of the program refuses an older Node. */
export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<CheckResult> {
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${platform()} ${arch()}`;
  try {
    return checkResult('versions', 'ok', `${base}, DuckDB ${await duckdbVersion()}`);
  } catch (error) {
    const { message, hint } = toCryptodlError(error);
    return checkResult('versions', 'fail', `${base}; ${message}`, { next: hint });
  }
}

/** The queue needs Redis. A run of a group does without a server that cannot be reached, so that is a warning. */
export async function checkRedis(
  address: string,
  group: EgressGroup | undefined,
  clock: Pick<Clock, 'monotonic'>,
): Promise<CheckResult> {
  const begun = clock.monotonic();
  try {
    const connection = await connectRedis(address, 'limit');
    const answerMs = Math.round(clock.monotonic() - begun);
    connection.close();
    const answers = `${shownRedis(address)} answers in ${answerMs} ms`;
    if (group === undefined) return checkResult('redis', 'ok', answers);
    await group.opened();
    const { name, members, isShared } = group.state;
    if (!isShared)
      return checkResult('redis', 'warn', `${answers}, but does not share the limits of the group ${name}`, {
        next: 'see the warning above',
      });
    const found = `${answers}; the group ${name} has ${countText(members, 'program')}, this one included`;
    return checkResult('redis', 'ok', found);
  } catch (error) {
    const { message, hint = 'check --redis', code } = toCryptodlError(error);
    // The runs of a group take their shares without Redis, of which the group warns.
    const status = group !== undefined && code === 'redis-unreachable' ? 'warn' : 'fail';
    return checkResult('redis', status, message, { next: hint });
  }
}
