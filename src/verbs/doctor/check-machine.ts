/** Checks of this machine: versions and memory, the server of `--redis`, the folders of a lake and its lock. They leave no files behind. */
import { arch, platform } from 'node:os';
import type { EgressGroup } from '../../http/throttle/group.js';
import type { Clock } from '../../model/clock.js';
import { toCryptodlError } from '../../model/errors.js';
import { memoryLimitBytes } from '../../files/machine.js';
import { bytesText, countText } from '../../model/units.js';
import { TOOL_VERSION } from '../../model/version.js';
import { connectRedis } from '../../http/redis/connection.js';
import { shownRedis } from '../../http/redis/redis-errors.js';

/** Fails when DuckDB cannot be loaded. The entry of the program refuses an older Node. */
export async function checkVersions(duckdbVersion: () => Promise<string>): Promise<CheckResult> {
  const memory = bytesText(Math.min(process.availableMemory(), memoryLimitBytes()));
  const base = `cryptodl ${TOOL_VERSION}, node ${process.versions.node}, ${platform()} ${arch()}, ${memory} of memory free`;
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

/** `fail`: runs that need the checked part do not work now. `warn`: runs work, but something should be changed. */
export type Status = 'ok' | 'warn' | 'fail';

export type CheckResult = Readonly<ReturnType<typeof checkResult>>;

/** `of`: the checked host or proxy, where there are several. `next`: what the user can do, if something needs to be done. */
export function checkResult(
  check: string,
  status: Status,
  found: string,
  { of, next }: { readonly of?: string | undefined; readonly next?: string | undefined } = {},
) {
  return { check, of, status, found, next };
}

/** A check that throws becomes a result with status `fail`. Rejects with the reason of the signal. */
export async function asResult(
  name: string,
  check: Promise<CheckResult>,
  signal: AbortSignal,
): Promise<CheckResult> {
  try {
    return await check;
  } catch (error) {
    signal.throwIfAborted();
    const { message, hint } = toCryptodlError(error);
    return checkResult(name, 'fail', message, { next: hint });
  }
}
