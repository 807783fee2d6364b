/** What this process does with the files that it has open, and a file system that refuses it. */
import blockingFs, { readlinkSync } from 'node:fs';
import type { PathLike } from 'node:fs';
import fs, { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { vi } from 'vitest';

/** Told before each call, which fails when this throws. */
type Answer = (path: string) => void;

/** In their order, the paths of what is synced while `act` runs. */
export async function syncsOf(
  act: () => Promise<unknown>,
  answer: Answer = () => undefined,
): Promise<string[]> {
  const synced: string[] = [];
  await withCalls('sync', act, (path) => {
    synced.push(path);
    answer(path);
  });
  return synced;
}

/** `method` of every open file is answered first, and then done. */
export async function withCalls(
  method: 'sync' | 'datasync' | 'readFile',
  act: () => Promise<unknown>,
  answer: Answer,
): Promise<void> {
  const handle = await open('/', 'r');
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const usual = prototype[method] as (...args: unknown[]) => Promise<never>;
  const spy = vi.spyOn(prototype, method).mockImplementation(async function (
    this: FileHandle,
    ...args: unknown[]
  ) {
    answer(readlinkSync(`/proc/self/fd/${this.fd}`));
    return usual.apply(this, args);
  });
  try {
    await act();
  } finally {
    spy.mockRestore();
  }
}

/** Each rename of a file or folder is answered first, with its old path, and then done. */
export async function withRenames(act: () => Promise<unknown>, answer: Answer): Promise<void> {
  const usual = fs.rename;
  const rename = async (from: PathLike, to: PathLike): Promise<void> => {
    answer(String(from));
    await usual(from, to);
  };
  await withSpy(vi.spyOn(fs, 'rename').mockImplementation(rename), act);
}

/** Each read that blocks is answered first, and then done. */
export async function withBlockingReads(act: () => Promise<unknown>, answer: Answer): Promise<void> {
  const usual = blockingFs.readSync as (...args: unknown[]) => number;
  const read = (...args: unknown[]): number => {
    answer(readlinkSync(`/proc/self/fd/${String(args[0])}`));
    return usual(...args);
  };
  await withSpy(vi.spyOn(blockingFs, 'readSync').mockImplementation(read), act);
}

async function withSpy(spy: { mockRestore(): unknown }, act: () => Promise<unknown>): Promise<void> {
  syncBuiltinESMExports();
  try {
    await act();
  } finally {
    spy.mockRestore();
    syncBuiltinESMExports();
  }
}

/** As the system says it. */
export function refuse(code: string): never {
  throw Object.assign(new Error(`${code}: refused`), { code, errno: -1 });
}
