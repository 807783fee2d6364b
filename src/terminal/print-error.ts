/** Prints an error for people: the message, the hint, and the stack of a bug. */
import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { fileURLToPath } from 'node:url';
import { packageFile } from '../files/package-file.js';
import type { CryptodlError } from '../model/errors.js';
import { exitCode, type ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { printLines } from '../text/printable.js';

export function printError(error: CryptodlError, io: Io): ExitCode {
  const { code, hint, cause } = error;
  const stack = code === 'bug' && cause instanceof Error ? originalStack(cause.stack ?? '').split('\n') : [];
  printLines(io.stderr, [
    `cryptodl: ${error.message}`,
    ...(hint?.split('\n') ?? []).map((line) => `  ${line.trimStart()}`),
    ...stack,
  ]);
  return exitCode({ ended: code });
}

/** A place in the bundle, whose files have these names for V8 (bin/load-bundle.js). */
const PLACE = /\bcryptodl-bundle\/([a-z-]+\.cjs):(\d+):(\d+)/g;
const BUNDLE = packageFile('dist/bundle/');

/** The stack with the files that the bundle was made from. A place without a source map stays as it is. */
function originalStack(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(PLACE, (place, name: string, line: string, column: string) => {
    const map = maps.has(name) ? maps.get(name) : readMap(name);
    maps.set(name, map);
    const origin = map?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !('fileName' in origin)) return place;
    const path = fileURLToPath(new URL(origin.fileName, BUNDLE));
    return `${path}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function readMap(name: string): SourceMap | undefined {
  try {
    const text = readFileSync(new URL(`${name}.map`, BUNDLE), 'utf8');
    return new SourceMap(JSON.parse(text) as SourceMapPayload);
  } catch {
    return undefined;
  }
}
