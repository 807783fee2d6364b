/** The structured log of a run (pino), for `--log-file` and `--log-level`. */
import { appendFileSync, closeSync } from 'node:fs';
import { destination, pino } from 'pino';
import type { Logger } from 'pino';
import { openOutputFile } from '../files/output-file.js';
import { errnoOf } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { linesText, printLines } from '../text/printable.js';

export interface Log {
  readonly logger: Logger;
  close(): void;
}

interface LogOptions {
  readonly file: string | undefined;
  readonly level: string;
  readonly toStderr: boolean;
  readonly warn: (message: string) => void;
}

interface Output {
  write(text: string): void;
  close(): void;
}

/** The log of `--log-file` and `--log-level`. Its warnings go to stderr. */
export function openLogOf(
  { logFile, logLevel }: { readonly logFile: string | undefined; readonly logLevel: string },
  { stderr }: { readonly stderr: NodeJS.WritableStream },
): Log {
  return openLog({
    file: logFile,
    level: logLevel,
    toStderr: logLevel !== 'info',
    warn: (message) => {
      printLines(stderr, [`warning: ${message}`]);
    },
  });
}

/** Appends to a file. Without a file, logs nothing unless `toStderr`. */
export function openLog({ file, level, toStderr, warn }: LogOptions): Log {
  if (file === undefined && !toStderr) return { logger: pino({ level: 'silent' }), close: () => undefined };
  const output = file === undefined ? standardError() : fileOutput(file, warn);
  return {
    logger: pino(
      { level, base: null },
      {
        write: (line) => {
          output.write(linesText([JSON.parse(line) as object]));
        },
      },
    ),
    close: () => {
      output.close();
    },
  };
}

function standardError(): Output {
  const stream = destination({ dest: 2, sync: true });
  return {
    write: (text) => void stream.write(text),
    close: () => {
      stream.flushSync();
    },
  };
}

/** A log that cannot be written causes a warning. The run goes on. */
function fileOutput(path: string, warn: LogOptions['warn']): Output {
  const file = openOutputFile({ flag: 'log-file', path, mode: 'append' });
  let isBroken = false;
  return {
    write: (text) => {
      if (isBroken) return;
      try {
        appendFileSync(file, text);
      } catch (error) {
        isBroken = true;
        warn(`--log-file ${path} cannot be written (${reasonOf(errnoOf(error))}): the log ends here`);
      }
    },
    close: () => {
      closeSync(file);
    },
  };
}
