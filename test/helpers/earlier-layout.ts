/** Gives a lake the layout of earlier versions: manifests beside the data, reports and quarantine without `_`. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { filesBelow } from './lake.js';
import { preload } from './preload.js';

export function toEarlierLayout(lake: string): void {
  const manifests = join(lake, '_manifests');
  for (const path of filesBelow(manifests))
    renameSync(join(manifests, path), join(lake, path.slice(0, -'.jsonl'.length), '_manifest.jsonl'));
  rmSync(manifests, { recursive: true });
  for (const name of ['failures', 'quarantine'])
    if (existsSync(join(lake, `_${name}`))) renameSync(join(lake, `_${name}`), join(lake, name));
}

export interface Harm {
  /** Kills the process with SIGKILL before this call, counted from 1. A copy has then written half of its file. */
  readonly killAt?: number;
  /** Old and new places are on different file systems. */
  readonly isOtherFileSystem?: boolean;
}

/** Environment of a process in which the calls on files of the lake are harmed. Calls on its lock do not count. */
export function harmedMoves(folder: string, lake: string, harm: Harm): Record<string, string> {
  return preload(
    folder,
    `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { killAt, isOtherFileSystem } = ${JSON.stringify(harm)};
const earlier = /_manifest\\.jsonl$|\\/(failures|quarantine)\\//;
let calls = 0;
const handle = await fs.promises.open(process.execPath);
const { appendFile } = Object.getPrototypeOf(handle);
await handle.close();
// The append of manifest lines: a kill leaves one of them and half of the next.
Object.getPrototypeOf(handle).appendFile = function (text) {
  calls += 1;
  if (calls === killAt) {
    const first = String(text).indexOf('\\n') + 1;
    fs.appendFileSync(this.fd, String(text).slice(0, first + 20));
    process.kill(process.pid, 'SIGKILL');
  }
  return appendFile.call(this, text);
};
for (const name of ['rename', 'rm', 'rmdir', 'writeFile', 'mkdir', 'open', 'copyFile']) {
  const original = fs.promises[name];
  fs.promises[name] = async (...args) => {
    const path = String(args[0]);
    if (path.startsWith(${JSON.stringify(lake)}) && !/\\/lock[.-]/.test(path)) calls += 1;
    if (calls === killAt) {
      if (name === 'copyFile') fs.writeFileSync(args[1], fs.readFileSync(path).subarray(0, 20));
      process.kill(process.pid, 'SIGKILL');
    }
    if (isOtherFileSystem && name === 'rename' && earlier.test(path))
      throw Object.assign(new Error('EXDEV'), { code: 'EXDEV' });
    return original.apply(fs.promises, args);
  };
}
syncBuiltinESMExports();`,
  );
}
