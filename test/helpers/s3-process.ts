/** The S3 server of `s3-server.ts` in a process of its own, so that many requests do not wait for the test. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import type { S3ServerOptions } from './s3-server.js';

export interface S3Process {
  readonly url: string;
  /** The variables with which a client finds the server and its credentials. */
  readonly environment: Readonly<Record<string, string>>;
  /** Ends the process. Its objects are lost. */
  close(): Promise<void>;
}

const FILES = ['s3-server', 's3-signature', 's3-xml'];

/** `delayMs`: each answer comes so much later. */
export async function startS3Process(
  options: S3ServerOptions & { readonly delayMs?: number } = {},
): Promise<S3Process> {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-s3-'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of FILES) {
    const source = readFileSync(fileURLToPath(new URL(`${name}.ts`, import.meta.url)), 'utf8');
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
    });
    writeFileSync(join(folder, `${name}.js`), outputText);
  }
  const server = pathToFileURL(join(folder, 's3-server.js')).href;
  const program = `
    const { S3Server } = await import(${JSON.stringify(server)});
    const { delayMs, ...options } = ${JSON.stringify(options)};
    const server = await new S3Server(options).listen();
    if (delayMs !== undefined) server.fault = () => ({ delayMs });
    console.log(JSON.stringify({ url: server.url, environment: server.environment }));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const close = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const ended = once(child, 'exit').then(() => {
    throw new Error('the S3 server does not start');
  });
  ended.catch(() => undefined);
  const line = await Promise.race([once(createInterface(child.stdout), 'line'), ended]);
  return { ...(JSON.parse(String(line[0])) as Pick<S3Process, 'url' | 'environment'>), close };
}
