/** `cryptodl serve DIR`: serves a folder like the archive until a signal ends it. */
import { stat } from 'node:fs/promises';
import { errnoOf, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import type { Options } from '../options/flags.js';
import { printLines } from '../text/printable.js';
import { serveArchive } from './archive.js';

/** Resolves with 130 or 143 after a signal. Throws usage errors for a wrong folder or port. */
export async function serve(directory: string, options: Options, io: Io): Promise<ExitCode> {
  const facts = await stat(directory).catch(() => undefined);
  if (facts?.isDirectory() !== true) {
    throw usage(
      `${directory} is not a folder`,
      'name the folder that contains data/, for example the --out of a run with --format zip',
    );
  }
  let server: Awaited<ReturnType<typeof serveArchive>>;
  try {
    server = await serveArchive({ directory, host: options.host, port: options.port });
  } catch (error) {
    const code = errnoOf(error);
    throw usage(
      `cannot listen on ${options.host} port ${options.port} (${code})`,
      '--port 0 chooses a free port',
    );
  }
  printLines(io.stdout, [server.url]);
  printLines(io.stderr, [`serving ${directory}; use it with --archive-url ${server.url}; Ctrl-C ends it`]);
  const signal = await new Promise<'SIGINT' | 'SIGTERM'>((resolve) => {
    io.onSignal(resolve);
  });
  await server.close();
  return signal === 'SIGINT' ? 130 : 143;
}
