/** Where the server, the region and the credentials of a bucket come from, and when credentials are looked for again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { beforeEach, expect, it, vi } from 'vitest';
import { all } from '../../helpers/bucket-contract.js';
import { bucketOf, s3Server } from '../../helpers/bucket.js';
import type { BucketChoice } from '../../helpers/bucket.js';
import { scratchFolder } from '../../helpers/folders.js';
import { refusal } from '../../helpers/requests.js';
import type { S3Server } from '../../helpers/s3-server.js';

const folder = scratchFolder();
let homes = 0;

/** Makes a home folder with the files of AWS. Returns its path. */
function homeWith(files: Readonly<Record<string, string>>): string {
  homes += 1;
  const home = join(folder, `home-${homes}`);
  mkdirSync(join(home, '.aws'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, '.aws', name), text);
  vi.stubEnv('HOME', home);
  return home;
}

beforeEach(() => {
  for (const name of Object.keys(process.env).filter((each) => each.startsWith('AWS_')))
    vi.stubEnv(name, undefined);
  // The last place in which the SDK looks is an address outside of this machine.
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
  homeWith({});
  return () => vi.unstubAllEnvs();
});

function keysOf({ options }: S3Server, token = options.sessionToken): string {
  const more = token === undefined ? '' : `aws_session_token = ${token}\n`;
  return `aws_access_key_id = ${options.accessKeyId}\naws_secret_access_key = ${options.secretAccessKey}\n${more}`;
}

const listed = async (choice: BucketChoice): Promise<number> =>
  (await all(bucketOf(choice).bucket.list(''))).length;

it('come from the environment, before all other places', async () => {
  const server = await s3Server();
  server.store('data/key', 'content');
  homeWith({ credentials: '[default]\naws_access_key_id = F\naws_secret_access_key = f\n' });
  expect(await listed(server)).toBe(1);
});

it('come with server and region from the profile in the files of AWS', async () => {
  const server = await s3Server({ region: 'eu-west-3', sessionToken: 'a+b/c==' });
  server.store('data/key', 'content');
  homeWith({
    credentials: `[default]\naws_access_key_id = D\naws_secret_access_key = d\n\n[other]\n${keysOf(server)}`,
    config: `[default]\nregion = us-east-2\n[profile other]\nregion = eu-west-3\nendpoint_url = ${server.url}\n`,
  });
  vi.stubEnv('AWS_PROFILE', 'other');
  const warnings: string[] = [];
  const observer = { warn: (message: string): void => void warnings.push(message) };
  expect(await listed({ environment: {}, observer })).toBe(1);
  expect([warnings, server.requests.length]).toEqual([[], 1]);
});

it('come from a program that the profile names', async () => {
  const server = await s3Server();
  const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey } = server.options;
  const home = homeWith({ config: '' });
  writeFileSync(join(home, 'keys.json'), JSON.stringify({ Version: 1, AccessKeyId, SecretAccessKey }));
  writeFileSync(
    join(home, '.aws', 'config'),
    `[default]\ncredential_process = cat ${join(home, 'keys.json')}\n`,
  );
  expect(await listed({ environment: { AWS_ENDPOINT_URL_S3: server.url } })).toBe(0);
});

it('are asked for if no place has them', async () => {
  const server = await s3Server();
  const error = await refusal(listed({ environment: { AWS_ENDPOINT_URL_S3: server.url } }));
  expect(error).toMatchObject({
    code: 'lake-refused',
    message: expect.stringMatching(/^no credentials for the bucket were found: [^\n]+$/) as string,
    hint: expect.stringContaining('AWS_PROFILE') as string,
  });
  expect(server.requests).toEqual([]);
});

it('lose the line break that files with one secret end with', async () => {
  const server = await s3Server({ sessionToken: 'TOKEN' });
  const environment = Object.fromEntries(
    Object.entries(server.environment).map(([name, value]) => [name, ` ${value}\r\n`]),
  );
  expect(await listed({ environment })).toBe(0);
});

it.each([
  ['AWS_ACCESS_KEY_ID', 'HIDDEN\nHIDDEN'],
  ['AWS_SECRET_ACCESS_KEY', 'HIDDEN\tHIDDEN'],
  ['AWS_SESSION_TOKEN', 'HIDDEN€HIDDEN'],
])('are refused with characters that a header cannot carry, and not shown: %s %j', async (name, value) => {
  const server = await s3Server();
  const error = await refusal(listed({ environment: { ...server.environment, [name]: value } }));
  expect(error.code).toBe('lake-refused');
  expect(error.hint).toContain(name);
  expect(inspect(error)).not.toContain('HIDDEN');
});

it('are looked for again after a failure, and five minutes before they expire', async () => {
  const server = await s3Server();
  const { accessKeyId, secretAccessKey } = server.options;
  let count = 0;
  const { bucket } = bucketOf({
    environment: server.environment,
    credentials: () => {
      count += 1;
      if (count === 1) return Promise.reject(new Error('no vault'));
      return Promise.resolve({ accessKeyId, secretAccessKey, expiration: new Date(Date.now() + 240_000) });
    },
  });
  expect((await refusal(bucket.head('key'))).message).toContain('no vault');
  await bucket.head('key');
  const before = count;
  await bucket.head('key');
  expect(count).toBeGreaterThan(before);
});

it('are waited for no longer than --total-timeout', async () => {
  const server = await s3Server();
  const credentials = (): Promise<never> => new Promise(() => undefined);
  const flags = { 'total-timeout': ['1s'] };
  const error = await refusal(listed({ environment: server.environment, credentials, flags }));
  expect(error.code).toBe('total-timeout');
});

it('are read again when the server calls their token expired, and the request is repeated', async () => {
  const server = await s3Server({ sessionToken: 'first' });
  const profile = (token: string): string => `[default]\n${keysOf(server, token)}`;
  const home = homeWith({ credentials: profile('first') });
  const { bucket } = bucketOf({ environment: { AWS_ENDPOINT_URL_S3: server.url } });
  server.store('data/key', 'content');
  expect(await all(bucket.list(''))).toHaveLength(1);
  server.fault = () => {
    server.fault = undefined;
    Object.assign(server.options, { sessionToken: 'second' });
    writeFileSync(join(home, '.aws', 'credentials'), profile('second'));
    return { status: 400, code: 'ExpiredToken' };
  };
  expect(await all(bucket.list(''))).toHaveLength(1);
  server.fault = () => ({ status: 400, code: 'ExpiredToken' });
  const error = await refusal(all(bucket.list('')));
  expect(error).toMatchObject({ code: 'lake-refused', hint: expect.stringContaining('expired') as string });
});
