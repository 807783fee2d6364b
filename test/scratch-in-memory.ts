/**
 * Folders of the tests in memory, where Linux has room there: a disk takes milliseconds for each file that is synced, and the tests
 * sync thousands. Tiers that are about the disk do without this setup.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
const NEEDED_BYTES = 2e9;

/** Vitest calls it once before its workers start, and what it returns after they have ended. */
export function setup(): (() => void) | undefined {
  if (!isUsable()) return undefined;
  const folder = mkdtempSync(`${MEMORY}/cryptodl-tests-`);
  // As those of /tmp, it can be passed through by other users.
  chmodSync(folder, 0o755);
  process.env['TMPDIR'] = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}

/** Containers often have 64 MB there. Some tests make device files and start programs in their folders. */
function isUsable(): boolean {
  if (!existsSync(MEMORY)) return false;
  const [, options = 'noexec'] =
    /^\S+ \/dev\/shm tmpfs (\S+) /m.exec(readFileSync('/proc/mounts', 'utf8')) ?? [];
  const { bavail, bsize } = statfsSync(MEMORY);
  return !/\bno(exec|dev)\b/.test(options) && bavail * bsize > NEEDED_BYTES;
}
