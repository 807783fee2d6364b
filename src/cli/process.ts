/** This process as an Io: the only place that touches its streams, signals and exit code. */
import type { Io } from '../io.js';
import { run } from '../main.js';

export async function main(): Promise<void> {
  const gone = new Set<NodeJS.WriteStream>();
  // A reader that has seen enough (`| head`) is no error.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      gone.add(stream);
    });
  }
  process.exitCode = await run(
    process.argv.slice(2),
    processIo(() => !gone.has(process.stdout)),
  );
}

function processIo(isRead: () => boolean): Io {
  return {
    isRead,
    stdout: process.stdout,
    stderr: process.stderr,
    stdin: process.stdin,
    environment: process.env,
    exit: (code) => process.exit(code),
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
