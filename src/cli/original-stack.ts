/** The stack of an error, with the files that the bundle was made from instead of the bundle. */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import type { SourceMapPayload } from 'node:module';
import { dirname, resolve } from 'node:path';

const PLACE = /([^\s(]+\.cjs):(\d+):(\d+)/g;

/** Lines of a stack as V8 formats them. A place without a source map stays as it is. */
export function originalStack(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(PLACE, (place, path: string, line: string, column: string) => {
    const map = maps.has(path) ? maps.get(path) : readMap(path);
    maps.set(path, map);
    const origin = map?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !('fileName' in origin)) return place;
    return `${resolve(dirname(path), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function readMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    return undefined;
  }
}
