/** Makes an Io from this process. No other file touches its streams, signals and exit code. */
import { totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../model/clock.js';
import type { Io, ProcessLimits } from '../model/io.js';
import { run } from '../main.js';
import { printLines } from '../text/printable.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));

export async function main(): Promise<void> {
  restrictUmask();
  let isRead = true;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    isRead = false;
    // A reader that stops early (`| head`) is no error.
    if (error.code === 'EPIPE') return;
    printLines(process.stderr, [`cryptodl: stdout cannot be written (${error.code ?? error.message})`]);
    // An exit at once is safe: committed data stays, and the kernel frees the lock.
    process.exit(1);
  });
  // Without stderr there is no place for an error.
  process.stderr.on('error', () => undefined);
  process.exitCode = await run(
    process.argv.slice(2),
    processIo(() => isRead),
  );
  await Promise.all([sent(process.stdout), sent(process.stderr)]);
  // At a natural end, Node removes its signal handlers first: SIGUSR2 would end a run that has succeeded, with another exit code.
  process.exit();
}

/** Resolves when the stream has passed its text on, or cannot. */
function sent(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.writableLength === 0 || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    for (const end of ['drain', 'error', 'close']) stream.once(end, resolve);
  });
}

/** Files and folders of a run are never writable by others, even with umask 000. The umask decides about the group. */
export function restrictUmask(): void {
  process.umask(process.umask(0o077) | 0o002);
}

function processIo(isRead: () => boolean): Io {
  return {
    isRead,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    // performance.now() starts at 0 with the process.
    startedAt: 0,
    stdin: process.stdin,
    program: [process.execPath, BIN],
    environment: process.env,
    limits: processLimits,
    exit: (code) => process.exit(code),
    kill: (signal) => {
      // Without a listener the signal ends the process.
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    },
    onSignal: (act) => {
      const onInterrupt = (): void => {
        act('SIGINT');
      };
      const onTerminate = (): void => {
        act('SIGTERM');
      };
      process.on('SIGINT', onInterrupt);
      process.on('SIGTERM', onTerminate);
      return () => {
        process.off('SIGINT', onInterrupt);
        process.off('SIGTERM', onTerminate);
      };
    },
    onDebugSignal: (act) => {
      process.on('SIGUSR2', act);
      return () => {
        process.off('SIGUSR2', act);
      };
    },
  };
}

export function processLimits(): ProcessLimits {
  const limitBytes = process.constrainedMemory();
  return {
    availableBytes: process.availableMemory(),
    // Without a container it is 0 or more than the memory of the machine.
    limitBytes: limitBytes > 0 && limitBytes < totalmem() ? limitBytes : undefined,
    openFiles: openFiles(),
  };
}

/** The soft limit of open files, which Node has raised to the hard limit. Windows has none. */
function openFiles(): number | undefined {
  // Without this, the report resolves the names of all peers.
  const { userLimits } = Object.assign(process.report, { excludeNetwork: true }).getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}
