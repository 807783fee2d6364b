/** Checks of this machine: versions and memory, the server of `--redis`, the clock, the bans, and the folders of a run. They leave no files behind. */
import { clockBounds } from '../../http/throttle/server-buckets.js';
import { arch, platform } from 'node:os';
import type { EgressGroup } from '../../http/throttle/group.js';
import type { Clock } from '../../model/clock.js';
import { toCryptodlError, errnoOf } from '../../model/errors.js';
import { memoryLimitBytes } from '../../files/machine.js';
import { SECOND_MS, bytesText, countText, durationText, instantText } from '../../model/units.js';
import { TOOL_VERSION } from '../../model/version.js';
import { connectRedis } from '../../http/redis/connection.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import type { Bans } from '../../http/throttle/bans.js';
import { constants } from 'node:fs';
import { access, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stagedBeside } from '../../files/temp-files.js';
import type { BackingTrial } from '../../files/backing.js';
import type { LakePaths } from '../../lake/layout.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { reasonOf } from '../../text/path-faults.js';
import { shownPath } from '../../text/printable.js';

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
  const begunMs = clock.monotonic();
  try {
    const connection = await connectRedis(address, 'limit');
    const answerMs = Math.round(clock.monotonic() - begunMs);
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

/** The clock of a host minus the local one, in milliseconds. */
export interface ClockDifference {
  readonly host: string;
  readonly differenceMs: number;
}

const FAIL_MS = 60_000;

/** Warns when the clock differs by more than a second from every host; fails from a minute on. */
export function checkClock(clocks: readonly ClockDifference[]): CheckResult {
  const [nearest] = clocks.toSorted((a, b) => Math.abs(a.differenceMs) - Math.abs(b.differenceMs));
  if (nearest === undefined)
    return checkResult('clock', 'warn', 'unknown: no host sent a Date header', {
      next: 'see the lines above',
    });
  const { host, differenceMs } = nearest;
  if (Math.abs(differenceMs) <= SECOND_MS)
    return checkResult('clock', 'ok', `within ${durationText(SECOND_MS)} of that of ${host}`);
  const found = `${durationText(Math.abs(differenceMs))} ${differenceMs > 0 ? 'behind' : 'ahead of'} that of ${host}`;
  const next =
    'set the clock, for example with timedatectl set-ntp true: "today", publication times and the validity of certificates depend on it';
  return checkResult('clock', Math.abs(differenceMs) > FAIL_MS ? 'fail' : 'warn', found, { next });
}

/** The least difference (host minus local, in ms) that explains the answer; 0 when the clocks may be equal. */
export function differenceOf(dateMs: number, sentAtMs: number, receivedAtMs: number): number {
  const { least, most } = clockBounds(dateMs, sentAtMs, receivedAtMs);
  if (least > 0) return least;
  return Math.min(most, 0);
}

/** Fails while a ban is in force. */
export async function checkBans(bans: Pick<Bans, 'current'>): Promise<CheckResult> {
  const current = [...(await bans.current())].sort(([, a], [, b]) => b.untilMs - a.untilMs);
  const [longest] = current;
  if (longest === undefined) return checkResult('bans', 'ok', 'none in force');
  const texts = current.map(([place, { untilMs }]) => `${place} until ${instantText(untilMs)} UTC`);
  return checkResult('bans', 'fail', `${texts.join(', ')}: ${longest[1].why}`, {
    next: 'run again after that; until then, runs that need the host send no request and end with exit code 7 (--clear-bans HOST removes a wrong ban)',
  });
}

/** `--clear-bans HOST`: removes the bans of the host and reports the others. */
export async function clearBans(bans: Pick<Bans, 'clear' | 'current'>, host: string): Promise<CheckResult> {
  const places = await bans.clear(host);
  const left = [...(await bans.current()).keys()];
  if (left.some((place) => place.endsWith(` ${host}`)))
    return checkResult('bans', 'fail', `the bans of ${host} could not be removed`, {
      next: 'choose a writable --state-dir',
    });
  if (places.length > 0) return checkResult('bans', 'ok', `removed: ${places.join(', ')}`);
  const others = left.length === 0 ? '' : `; bans in force: ${left.join(', ')}`;
  return checkResult('bans', 'ok', `no ban of ${host} is in force${others}`);
}

const LITTLE_ROOM_BYTES = 1e9;

/** Warns when the folder has less than 1 GB free, and when a state folder cannot be written; fails for others. `within`: for the probe file. */
export async function checkFolder(
  check: 'out' | 'temp' | 'state',
  path: string,
  within = path,
): Promise<CheckResult> {
  const shown = shownPath(path);
  try {
    const there = await nearestFolder(path);
    const { bavail, blocks, bsize } = await statfs(there);
    // Some network file systems report a size of 0.
    const room = blocks === 0 ? undefined : bavail * bsize;
    const free = room === undefined ? '' : `; ${bytesText(room)} free`;
    if (there === path) await writeProbe(await nearestFolder(within));
    else await access(there, constants.W_OK | constants.X_OK);
    const found = `${shown} ${there === path ? 'can be written' : 'does not exist yet; the first run creates it'}${free}`;
    if ((room ?? Infinity) >= LITTLE_ROOM_BYTES) return checkResult(check, 'ok', found);
    return checkResult(check, 'warn', found, {
      next: `free some space, or choose another ${check === 'out' ? '--out' : `--${check}-dir`}`,
    });
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'unknown error') throw error;
    const found = `${shown} is not writable: ${reasonOf(error)} (${code})`;
    if (check !== 'state')
      return checkResult(check, 'fail', found, { next: 'choose another folder, or make this one writable' });
    return checkResult(check, 'warn', found, {
      next: 'choose a writable --state-dir: without one, runs do not share bans, request limits and cached answers',
    });
  }
}

/** The result for a lake in a bucket. A bucket that refuses the trial fails the check with its error. */
export function bucketResult(shown: string, { putMs, isAtomic }: BackingTrial): CheckResult {
  const found = `${shown} is written; a put takes ${Math.round(putMs)} ms`;
  if (isAtomic) return checkResult('out', 'ok', found);
  return checkResult('out', 'warn', `${found}; the server has no conditional writes`, {
    next: 'let only one run at a time write a series (--shard)',
  });
}

/** The folder, or its nearest parent that exists. Throws ENOTDIR where a file stands in place of a folder. */
async function nearestFolder(path: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if ((await stat(folder)).isDirectory()) return folder;
      throw Object.assign(new Error(`${folder} is not a folder`), { code: 'ENOTDIR' });
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

async function writeProbe(folder: string): Promise<void> {
  const file = await stagedBeside(join(folder, 'probe'));
  try {
    await writeFile(file, 'probe', { flag: 'wx' });
  } finally {
    await rm(file, { force: true });
  }
}

/** Warns while another run holds the lock. */
export async function checkLock({ internal }: LakePaths): Promise<CheckResult> {
  try {
    await refuseIfLocked(internal);
    return checkResult('lock', 'ok', 'no run writes to this lake');
  } catch (error) {
    const { code, message, hint } = toCryptodlError(error);
    if (code !== 'locked') throw error;
    return checkResult('lock', 'warn', message, { next: hint });
  }
}
