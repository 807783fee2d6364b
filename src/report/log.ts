/** Owner of pino: the structured log, when somebody asked for one. */
import { dirname } from 'node:path';
import { destination, pino } from 'pino';
import type { Logger } from 'pino';
import { linesText } from '../printable.js';
import { makeFolderSync } from '../make-folder.js';

export interface Log {
  readonly logger: Logger;
  close(): void;
}

/** To a file, appended; without a file nothing is logged unless `toStderr`. */
export function openLog(options: { file: string | undefined; level: string; toStderr: boolean }): Log {
  if (options.file === undefined && !options.toStderr)
    return { logger: pino({ level: 'silent' }), close: () => undefined };
  if (options.file !== undefined) makeFolderSync(dirname(options.file));
  const stream = destination({ dest: options.file ?? 2, sync: true, append: true });
  return {
    logger: pino(
      { level: options.level, base: null },
      {
        write: (line) => stream.write(linesText([JSON.parse(line) as object])),
      },
    ),
    close: () => {
      stream.flushSync();
      if (options.file !== undefined) stream.end();
    },
  };
}
