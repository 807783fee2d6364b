/** BullMQ, ioredis and the SDK of AWS are optional packages, which an installation may lack. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();

/** As if the packages were not there. */
const HOOKS = `
  export async function resolve(name, context, next) {
    if (!/^(bullmq|ioredis|@aws-sdk\\/.*)$/.test(name)) return next(name, context);
    throw Object.assign(new Error("Cannot find package '" + name + "'"), { code: 'ERR_MODULE_NOT_FOUND' });
  }
`;

const QUEUE = {
  text: 'a queue needs the packages bullmq and ioredis, which are not installed',
  packages: 'bullmq ioredis',
};
const BUCKET = {
  text: 'a lake in a bucket needs the packages @aws-sdk/client-s3 and @aws-sdk/lib-storage, which are not installed',
  packages: '@aws-sdk/client-s3 @aws-sdk/lib-storage',
};
const REDIS = ['--redis', 'redis://127.0.0.1:1'];
const VISION = ['vision', '--symbols', 'BTCUSDT', '--archive-url', 'http://127.0.0.1:1'];

it.each([
  ['enqueue', [...VISION, '--wait', ...REDIS], QUEUE],
  ['worker', REDIS, QUEUE],
  ['status', REDIS, QUEUE],
  ['retry', REDIS, QUEUE],
  ['coverage', ['--out', 's3://lake/data'], BUCKET],
])('%s says which packages to install', async (verb, words, { text, packages }) => {
  const script = join(scratch, `${verb}.mjs`);
  const hooks = `data:text/javascript,${encodeURIComponent(HOOKS)}`;
  writeFileSync(script, `import { register } from 'node:module';\nregister(${JSON.stringify(hooks)});\n`);
  const env = { NODE_OPTIONS: `--import ${script}` };
  const { code, stderr } = await cryptodlProcess([verb, ...words], { env });
  expect([code, stderr]).toEqual([
    1,
    `cryptodl: ${text}\n  npm install ${packages} (with -g if cryptodl was installed with -g)\n`,
  ]);
});

it('asks for the server of the queue', async () => {
  const { code, stderr } = await cryptodlProcess(['worker']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('worker needs the Redis server of the queue')]);
});

it('refuses a folder for a worker of one role', async () => {
  const words = ['worker', '--role', 'convert', '--out', scratch, '--redis', 'redis://127.0.0.1:1'];
  const { code, stderr } = await cryptodlProcess(words);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('--role convert: the workers share the zips in a bucket, and --out is a folder'),
  ]);
});
