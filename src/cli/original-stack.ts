/** The stack of an error, with the files that the bundle was made from instead of the bundle. */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import type { SourceMapPayload } from 'node:module';
import { fileURLToPath } from 'node:url';

/** A place in the bundle, whose files have these names for V8 (bin/load-bundle.js). */
const PLACE = /\bcryptodl-bundle\/([a-z-]+\.cjs):(\d+):(\d+)/g;
const BUNDLE = new URL('../bundle/', import.meta.url);

/** Lines of a stack as V8 formats them. A place without a source map stays as it is. */
export function originalStack(stack: string): string {
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
