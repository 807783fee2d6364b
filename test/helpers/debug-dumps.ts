/** Runs that stand still, get SIGUSR2 there, and go on. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { resolve } from 'node:path';
import type { RunOptions, Scene, SceneRun, Words } from './scene.js';

export interface Dump {
  readonly reason: string;
  readonly pid: number;
  readonly runs: readonly Readonly<Record<string, unknown>>[];
  readonly memory: Readonly<Record<string, number>>;
  readonly heapSpacesBytes: Readonly<Record<string, number>>;
  readonly heapGrowthBytes?: Readonly<Record<string, number>>;
  readonly openFiles: Readonly<Record<string, number>>;
}

export function readDump(path: string): Dump {
  return JSON.parse(readFileSync(path, 'utf8')) as Dump;
}

export interface Standing {
  readonly child: ChildProcess;
  readonly ended: Promise<SceneRun>;
  /** What the program has written to stderr. */
  readonly said: () => string;
  /** Sends SIGUSR2 and resolves when a new line of stderr matches, with its first group. */
  readonly dump: (line?: RegExp) => Promise<string>;
  /** Lets the run go on. */
  readonly release: () => void;
}

/** Starts `cryptodl vision`. Resolves when so many of these requests have arrived. They are answered after `release`. */
export async function standAt(
  scene: Scene,
  isMeant: (path: string) => boolean,
  flags: Words = [],
  { most = 1, ...options }: RunOptions & { readonly most?: number } = {},
): Promise<Standing> {
  const held: (() => void)[] = [];
  const arrived = new Promise<void>((stands) => {
    scene.answer(isMeant, (request, response: ServerResponse) => {
      held.push(() => {
        scene.archive.serve(request, response);
      });
      if (held.length >= most) stands();
    });
  });
  const standing = spawned(scene, flags, options);
  await Promise.race([arrived, standing.ended.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
  return {
    ...standing,
    release: () => {
      scene.archive.fault = undefined;
      for (const serve of held) serve();
    },
  };
}

/** A run as a process of its own. */
export function spawned(scene: Scene, flags: Words, options: RunOptions = {}): Omit<Standing, 'release'> {
  let child: ChildProcess | undefined;
  let said = '';
  const ended = scene.vision(flags, {
    ...options,
    onSpawn: (started) => {
      child = started;
      started.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
    },
  });
  if (child === undefined) throw new Error('nothing was spawned');
  const { pid = 0 } = child;
  return {
    child,
    ended,
    said: () => said,
    dump: async (line = /^debug dump: (.*)$/m) => {
      const from = said.length;
      process.kill(pid, 'SIGUSR2');
      return lineOf(() => said.slice(from), line);
    },
  };
}

/** Resolves with the first group of the line when it is there. */
export async function lineOf(text: () => string, line: RegExp): Promise<string> {
  for (;;) {
    const found = line.exec(text());
    if (found !== null) return found[1] === undefined ? found[0] : resolve(found[1]);
    await new Promise((again) => setTimeout(again, 10));
  }
}
