/** `fork(s3-server.js, [FOLDER, DELAY])`: the S3 server of the tests in a process of its own. Each answer comes DELAY milliseconds later. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

const FILES = ['s3-server', 's3-signature', 's3-xml'];
const [folder = '', delay = '0'] = process.argv.slice(2);
writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
for (const name of FILES) {
  const source = readFileSync(new URL(`../test/helpers/${name}.ts`, import.meta.url), 'utf8');
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  writeFileSync(join(folder, `${name}.js`), outputText);
}
/** @type {typeof import('../test/helpers/s3-server.js')} */
const { S3Server } = await import(pathToFileURL(join(folder, 's3-server.js')).href);
const server = await new S3Server().listen();
server.fault = () => {
  // The log of requests would grow with the measurement.
  server.requests.length = 0;
  return { delayMs: Number(delay) };
};
process.on('disconnect', () => process.exit());
process.send?.({ environment: server.environment });
