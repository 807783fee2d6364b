/** What lies where a failure report is to be written: only a report is ever replaced or removed. */
import { constants, createReadStream } from 'node:fs';
import { access, lstat, open, stat } from 'node:fs/promises';
import type { Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { errnoOf, usage } from '../errors.js';
import { makeFolder } from '../make-folder.js';
import { isCutLine, isHeader, isLineBelow } from './read-failure-report.js';

/**
 * `free`: nothing. `empty`: a file without content, which is not ours but loses nothing. `report`: an earlier one.
 * `pipe` and `device`: written to, never replaced or removed.
 */
export type ReportPlace = 'free' | 'empty' | 'report' | 'pipe' | 'device';

/** Throws a usage error for anything that is not to be written over. */
export async function reportPlace(path: string): Promise<ReportPlace> {
  const link = await statsOf(path, lstat);
  if (link === undefined) return 'free';
  // /dev/stderr and >(command) are links to pipes and devices.
  const target = link.isSymbolicLink() ? await statsOf(path, stat) : link;
  if (target?.isFIFO() === true) return 'pipe';
  if (target?.isCharacterDevice() === true) return 'device';
  // /dev/stderr of a service: in /dev no file can be made beside it.
  if (link.isSymbolicLink() && target?.isSocket() === true)
    throw await refusal(path, 'is a socket', 'failures.jsonl');
  if (link.isSymbolicLink()) throw await refusal(path, 'is a symbolic link, which is not followed');
  if (link.isDirectory()) throw await refusal(path, 'is a folder', join(path, 'failures.jsonl'));
  if (!link.isFile()) throw await refusal(path, 'is not a file, a pipe or a device to write text to');
  if (link.size === 0) return 'empty';
  if (await isReport(path)) return 'report';
  throw await refusal(path, 'is not a failure report, and is not replaced');
}

/** Throws a usage error when the folder of reports is there and is none. */
export async function refuseBadFolder(folder: string): Promise<void> {
  const facts = await statsOf(folder, stat);
  if (facts === undefined || facts.isDirectory()) return;
  throw usage(
    `${folder} is not a folder, and failure reports are written into a folder of that name`,
    'move it, or choose a file with --failures FILE',
  );
}

/** Found out before the first byte, not with the first failure. Throws a usage error. */
export async function refuseBadPlace(path: string): Promise<void> {
  const place = await reportPlace(path);
  try {
    await makeFolder(dirname(path));
    await access(place === 'free' ? dirname(path) : path, constants.W_OK);
    // A service has no /dev/tty, which is told only when it is opened.
    if (place === 'device') await (await open(path, constants.O_WRONLY | constants.O_NOCTTY)).close();
  } catch (error) {
    throw usage(
      `--failures ${path} cannot be written (${errnoOf(error)})`,
      'choose another --failures, or leave it out',
    );
  }
}

async function statsOf(path: string, look: (path: string) => Promise<Stats>): Promise<Stats | undefined> {
  try {
    return await look(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return undefined;
    throw usage(
      `--failures ${path} cannot be looked at (${errnoOf(error)})`,
      'choose another --failures, or leave it out',
    );
  }
}

async function refusal(path: string, why: string, instead = path): Promise<Error> {
  return usage(`--failures ${path} ${why}`, 'choose a new file, or move what is there', {
    flags: { failures: await freeName(instead) },
  });
}

async function freeName(path: string): Promise<string> {
  for (let copy = 1; ; copy += 1) {
    const candidate = copyName(path, copy);
    if ((await statsOf(candidate, lstat)) === undefined) return candidate;
  }
}

/** `vision-….jsonl`, `vision-…-2.jsonl` and so on. */
export function copyName(path: string, copy: number): string {
  return copy === 1 ? path : path.replace(/(\.\w+)?$/, `-${copy}$1`);
}

/** Longer than a header with all symbols that a command line can hold. */
const MOST_LINE_CHARACTERS = 4 << 20;

/** Line by line to the end: lines below those of a report are lost with it. */
async function isReport(path: string): Promise<boolean> {
  let isFirst = true;
  let rest = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = (rest + String(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!(isFirst ? isHeader(line) : isLineBelow(line))) return false;
      isFirst = false;
    }
    if (rest.length > MOST_LINE_CHARACTERS) return false;
  }
  return isFirst ? isHeader(rest) : isLineBelow(rest) || isCutLine(rest);
}
