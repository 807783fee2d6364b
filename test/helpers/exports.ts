/** `cryptodl export` of lakes, and what it leaves in its target. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { cryptodl } from './cli.js';
import type { CliResult } from './cli.js';
import { filesBelow } from './lake.js';
import type { Scene } from './scene.js';

export interface Exports {
  readonly newTarget: () => string;
  readonly exported: (
    program: string,
    lake: string,
    target: string,
    ...flags: readonly string[]
  ) => Promise<CliResult>;
  /** An export to a new target. */
  readonly newExport: (
    program: string,
    lake: string,
    ...flags: readonly string[]
  ) => Promise<CliResult & { readonly target: string }>;
}

export function exportsOf(scene: Scene): Exports {
  const newTarget = (): string => join(scene.newFolder(), 'target');
  const exported: Exports['exported'] = (program, lake, target, ...flags) =>
    cryptodl(['export', program, '--out', lake, '--target', target, '--now', scene.now, ...flags]);
  return {
    newTarget,
    exported,
    newExport: async (program, lake, ...flags) => {
      const target = newTarget();
      return { ...(await exported(program, lake, target, ...flags)), target };
    },
  };
}

/** The files of an export without its record. */
export function filesOf(target: string): string[] {
  return filesBelow(target).filter((path) => !path.startsWith('.cryptodl-export/'));
}

/** The lines of a text, also of a packed one. */
export function linesOf(...path: readonly string[]): string[] {
  const file = join(...path);
  const bytes = readFileSync(file);
  const text = file.endsWith('.gz') ? gunzipSync(bytes) : bytes;
  return text.toString('utf8').trimEnd().split('\n');
}
