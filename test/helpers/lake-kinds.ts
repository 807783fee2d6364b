/** Lakes of both kinds for the same tests: in a folder, and in a bucket of a server in this process. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { S3Server } from './s3-server.js';

export interface TestLake {
  /** The value of --out. */
  readonly out: string;
  readonly environment: Readonly<Record<string, string>>;
  /** A folder with all files of the lake. */
  content(): string;
  read(path: string): Buffer;
  /** Replaces a file, or removes it. */
  change(path: string, content: Buffer | string | undefined): void;
}

export interface LakeKind {
  make(): TestLake;
  close(): Promise<void>;
}

export function inFolders(scratch: string): Promise<LakeKind> {
  return Promise.resolve({
    make: () => {
      const out = mkdtempSync(join(scratch, 'lake-'));
      return {
        out,
        environment: {},
        content: () => out,
        read: (path) => readFileSync(join(out, path)),
        change: (path, content) => {
          if (content === undefined) rmSync(join(out, path));
          else {
            mkdirSync(dirname(join(out, path)), { recursive: true });
            writeFileSync(join(out, path), content);
          }
        },
      };
    },
    close: () => Promise.resolve(),
  });
}

export async function inBuckets(scratch: string): Promise<LakeKind> {
  const server = await new S3Server({ pageSize: 3 }).listen();
  let lakes = 0;
  return {
    make: () => {
      lakes += 1;
      return lakeInBucket(server, `lakes/${lakes}`, scratch);
    },
    close: () => server.close(),
  };
}

export function lakeInBucket(server: S3Server, prefix: string, scratch: string): TestLake {
  return {
    out: `s3://${server.bucket}/${prefix}`,
    environment: server.environment,
    content: () => copiedOut(server, prefix, scratch),
    read: (path) => server.objects.get(`${prefix}/${path}`)?.bytes ?? Buffer.alloc(0),
    change: (path, content) => {
      if (content === undefined) server.objects.delete(`${prefix}/${path}`);
      else server.store(`${prefix}/${path}`, content);
    },
  };
}

function copiedOut(server: S3Server, prefix: string, scratch: string): string {
  const folder = mkdtempSync(join(scratch, 'copy-'));
  for (const [key, { bytes }] of server.objects) {
    if (!key.startsWith(`${prefix}/`)) continue;
    const path = join(folder, key.slice(prefix.length + 1));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
  return folder;
}
