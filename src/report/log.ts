/** The structured log of a run (pino), for `--log-file` and `--log-level`. */
import { appendFileSync, closeSync, constants, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { destination, pino } from 'pino';
import type { Logger } from 'pino';
import { makeFolderSync } from '../files/disk.js';
import { errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';
import { linesText, printLines, shownPath } from '../text/printable.js';

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
  const file = openFile(path);
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

/** Throws a usage error if the path cannot be opened. A pipe without a reader is an error too; an ordinary open would wait forever. */
function openFile(path: string): number {
  let first: number | undefined;
  try {
    makeFolderSync(dirname(path));
    const isPipe = statSync(path, { throwIfNoEntry: false })?.isFIFO() === true;
    first = isPipe ? openSync(path, constants.O_WRONLY | constants.O_NONBLOCK) : undefined;
    return openSync(path, 'a');
  } catch (error) {
    const reason = errnoOf(error) === 'ENXIO' ? 'nothing reads it, ENXIO' : reasonOf(errnoOf(error));
    throw usage(
      `--log-file ${shownPath(path)} cannot be written (${reason})`,
      'choose another --log-file, or leave it out',
    );
  } finally {
    if (first !== undefined) closeSync(first);
  }
}
