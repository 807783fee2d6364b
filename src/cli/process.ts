/** This process as an Io: the only place that touches its streams, signals and exit code. */
import { totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Io, ProcessLimits } from '../model/io.js';
import { run } from '../main.js';
import { printLines } from '../text/printable.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));

export async function main(): Promise<void> {
  restrictUmask();
  let isRead = true;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    isRead = false;
    // A reader that has seen enough (`| head`) is no error.
    if (error.code === 'EPIPE') return;
    printLines(process.stderr, [`cryptodl: stdout cannot be written (${error.code ?? error.message})`]);
    // As safe as any other end: what is committed stays, and the kernel frees the lock.
    process.exit(1);
  });
  // There is nobody left to tell.
  process.stderr.on('error', () => undefined);
  process.exitCode = await run(
    process.argv.slice(2),
    processIo(() => isRead),
  );
}

/** Files and folders of a run are never writable by others, also under umask 000. The group is the choice of the umask. */
export function restrictUmask(): void {
  process.umask(process.umask(0o077) | 0o002);
}

function processIo(isRead: () => boolean): Io {
  return {
    isRead,
    stdout: process.stdout,
    stderr: process.stderr,
    // The clock of performance.now() begins with the process.
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
  };
}

export function processLimits(): ProcessLimits {
  const limitBytes = process.constrainedMemory();
  return {
    availableBytes: process.availableMemory(),
    // Without a container it is 0, or more than there is.
    limitBytes: limitBytes > 0 && limitBytes < totalmem() ? limitBytes : undefined,
    openFiles: openFiles(),
    threads: process.env['UV_THREADPOOL_SIZE'],
  };
}

/** Node has raised it to the hard limit already; Windows has none. */
function openFiles(): number | undefined {
  // The report would look up the names of all peers.
  const { userLimits } = Object.assign(process.report, { excludeNetwork: true }).getReport() as {
    userLimits?: { open_files?: { soft?: number | string } };
  };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}
