/** Makes an Io from this process. Beside this file, only `bin/cryptodl.js` touches its streams, signals and exit code. */
import { fileURLToPath } from 'node:url';
import { packageFile } from './files/package-file.js';
import { systemClock } from './model/clock.js';
import { CryptodlError } from './model/errors.js';
import type { Io } from './model/io.js';
import { cores } from './files/machine.js';
import { run } from './main.js';
import { printLines } from './text/printable.js';

const BIN = fileURLToPath(packageFile('bin/cryptodl.js'));

export async function main(): Promise<void> {
  restrictUmask();
  // Inflating, hashing to disk and DuckDB share libuv's pool, whose size is read once, at its first use.
  process.env['UV_THREADPOOL_SIZE'] ??= String(Math.max(4, cores() * 2));
  // The SDK of AWS would print a warning about this version of Node beside the lines of the program.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
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
  const io = processIo(() => isRead);
  process.exitCode = await run(process.argv.slice(2), io);
  const allSent = Promise.all([sent(process.stdout), sent(process.stderr)]);
  await (io.signal.aborted ? Promise.race([allSent, io.clock.sleep(GRACE_MS)]) : allSent);
  // At a natural end, Node removes its signal handlers first: SIGUSR2 would end a run that has succeeded, with another exit code.
  process.exit();
}

/** After a signal, readers of stdout and stderr are waited for no longer than this. */
const GRACE_MS = 1000;

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
  const stop = new AbortController();
  return {
    isRead,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    // performance.now() starts at 0 with the process.
    startedAtMs: 0,
    stdin: process.stdin,
    program: [process.execPath, BIN],
    environment: process.env,
    exit: (code) => process.exit(code),
    kill: (signal) => {
      // Without a listener the signal ends the process.
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    },
    signal: stop.signal,
    onSignal: (act) =>
      listen(['SIGINT', 'SIGTERM'], (signal) => {
        stop.abort(new CryptodlError('interrupted', `ended by ${signal}`));
        act(signal as 'SIGINT' | 'SIGTERM');
      }),
    onDebugSignal: (act) => listen(['SIGUSR2'], act),
  };
}

/** Calls `act` at each of these signals, until the returned function is called. */
function listen(signals: readonly NodeJS.Signals[], act: NodeJS.SignalsListener): () => void {
  for (const signal of signals) process.on(signal, act);
  return () => {
    for (const signal of signals) process.off(signal, act);
  };
}
