/** Where the credentials of a bucket come from, and when they are fetched again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { credentialPlaces } from '../../src/s3/credential-chain.js';
import { CredentialSource } from '../../src/s3/credentials.js';
import type { Credentials } from '../../src/s3/credentials.js';
import { all } from '../helpers/bucket-contract.js';
import { bucketOf, s3Server } from '../helpers/bucket.js';
import { scratchFolder } from '../helpers/folders.js';
import { refusal } from '../helpers/requests.js';

const folder = scratchFolder();
const { signal } = new AbortController();
const MINUTE_MS = 60_000;

let homes = 0;
/** A home folder with the files of AWS. */
function homeWith(files: Readonly<Record<string, string>>): string {
  homes += 1;
  const home = join(folder, `home-${homes}`);
  mkdirSync(join(home, '.aws'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, '.aws', name), text);
  return home;
}

function found(
  environment: Readonly<Record<string, string>>,
  load?: () => Promise<unknown>,
): Promise<Credentials> {
  const places = credentialPlaces(
    { AWS_EC2_METADATA_DISABLED: 'true', HOME: homeWith({}), ...environment },
    load,
  );
  return new CredentialSource(places, { now: () => Date.now() }).current(signal);
}

/** A server on this machine; `answer` gives the text, or undefined for a 404. */
async function endpoint(answer: (request: IncomingMessage) => string | undefined): Promise<string> {
  const server = createServer((request, response) => {
    const text = answer(request);
    response.writeHead(text === undefined ? 404 : 200).end(text);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answerOf = (id: string, expiration?: string): string =>
  JSON.stringify({ AccessKeyId: id, SecretAccessKey: 'secret', Token: 'token', Expiration: expiration });

describe('credentials come from', () => {
  it('the environment, before all other places', async () => {
    const HOME = homeWith({ credentials: '[default]\naws_access_key_id = F\naws_secret_access_key = f\n' });
    const keys = { AWS_ACCESS_KEY_ID: 'E', AWS_SECRET_ACCESS_KEY: 'e' };
    expect(await found({ HOME, ...keys })).toEqual({ accessKeyId: 'E', secretAccessKey: 'e' });
    expect(await found({ HOME, ...keys, AWS_SESSION_TOKEN: 't' })).toMatchObject({ sessionToken: 't' });
    const { message } = await refusal(found({ HOME, AWS_ACCESS_KEY_ID: 'E' }));
    expect(message).toContain('AWS_SECRET_ACCESS_KEY is not set');
  });

  it('the profile of the shared files', async () => {
    const HOME = homeWith({
      credentials:
        '# keys\r\n[default]\r\naws_access_key_id=D\r\naws_secret_access_key = d/+=  # old\r\n\r\n[ other ]\naws_access_key_id = O\naws_secret_access_key = o\naws_session_token = t==\n',
      config:
        '[default]\nregion = eu-west-1\n[profile of config]\naws_access_key_id = C\naws_secret_access_key = c\ns3 =\n  aws_access_key_id = nested\n',
    });
    expect(await found({ HOME })).toEqual({ accessKeyId: 'D', secretAccessKey: 'd/+=' });
    expect(await found({ HOME, AWS_PROFILE: 'other' })).toEqual({
      accessKeyId: 'O',
      secretAccessKey: 'o',
      sessionToken: 't==',
    });
    expect(await found({ HOME, AWS_PROFILE: 'of config' })).toMatchObject({ accessKeyId: 'C' });
    const moved = { AWS_SHARED_CREDENTIALS_FILE: join(HOME, '.aws', 'credentials') };
    expect(await found(moved)).toMatchObject({ accessKeyId: 'D' });
    const error = await refusal(found({ HOME, AWS_PROFILE: 'none' }));
    expect(error).toMatchObject({ code: 'lake-refused', message: 'there is no profile none of AWS' });
  });

  it('the endpoint of a container, with its token', async () => {
    const url = await endpoint(({ url: path, headers }) =>
      path === '/v1/role' && headers.authorization === 'Bearer abc' ? answerOf('CONTAINER') : undefined,
    );
    const file = join(folder, 'token');
    writeFileSync(file, 'Bearer abc\n');
    const full = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/v1/role` };
    expect(await found({ ...full, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file })).toMatchObject({
      accessKeyId: 'CONTAINER',
      sessionToken: 'token',
    });
    expect(await found({ ...full, AWS_CONTAINER_AUTHORIZATION_TOKEN: 'Bearer abc' })).toMatchObject({
      accessKeyId: 'CONTAINER',
    });
    expect((await refusal(found(full))).message).toBe('the credentials of the container are not available');
    const foreign = { AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://credentials.test/role' };
    expect((await refusal(found(foreign))).message).toContain('not an address of this machine');
  });

  it('the endpoint of a virtual machine, in version 2', async () => {
    const url = await endpoint(({ method, url: path, headers }) => {
      if (method === 'PUT' && path === '/latest/api/token')
        return headers['x-aws-ec2-metadata-token-ttl-seconds'] === undefined ? undefined : 'session';
      if (headers['x-aws-ec2-metadata-token'] !== 'session') return undefined;
      if (path === '/latest/meta-data/iam/security-credentials/') return 'my-role';
      return path === '/latest/meta-data/iam/security-credentials/my-role' ? answerOf('MACHINE') : undefined;
    });
    const machine = { AWS_EC2_METADATA_SERVICE_ENDPOINT: url, AWS_EC2_METADATA_DISABLED: '' };
    expect(await found(machine)).toMatchObject({ accessKeyId: 'MACHINE' });
    const error = await refusal(found({ ...machine, AWS_EC2_METADATA_DISABLED: 'true' }));
    expect(error.message).toBe('no credentials for the bucket were found');
  });

  it('the package of AWS, for what only it can do', async () => {
    const HOME = homeWith({ config: '[profile sso]\nsso_session = mine\n' });
    const load = (): Promise<unknown> =>
      Promise.resolve({
        fromNodeProviderChain:
          ({ profile }: { profile?: string }) =>
          () =>
            Promise.resolve({
              accessKeyId: `package ${profile}`,
              secretAccessKey: 's',
              expiration: new Date('2026-11-23T20:00:00Z'),
            }),
      });
    expect(await found({ HOME, AWS_PROFILE: 'sso' }, load)).toMatchObject({
      accessKeyId: 'package sso',
      expiresAt: Date.parse('2026-11-23T20:00:00Z'),
    });
    // Node's error for a package that is not installed; vitest has another one.
    const missing = (): Promise<unknown> =>
      Promise.reject(Object.assign(new Error('no package'), { code: 'ERR_MODULE_NOT_FOUND' }));
    const absent = await refusal(found({ HOME, AWS_PROFILE: 'sso' }, missing));
    expect(absent).toMatchObject({
      code: 'package-missing',
      message:
        'sso_session of the profile sso needs the package @aws-sdk/credential-providers, which is not installed',
      hint: expect.stringMatching(/^npm install @aws-sdk\/credential-providers /) as string,
    });
    const identity = await refusal(found({ AWS_WEB_IDENTITY_TOKEN_FILE: '/token' }, missing));
    expect(identity.message).toContain('AWS_WEB_IDENTITY_TOKEN_FILE needs the package');
  });

  it.each([
    ['no JSON with a secret'],
    ['{"AccessKeyId":"A","SecretAccessKey":5,"Token":"secret"}'],
    ['null'],
  ])('no wrong answer, and its content is not shown: %s', async (text) => {
    const url = await endpoint(() => text);
    const error = await refusal(found({ AWS_CONTAINER_CREDENTIALS_FULL_URI: url }));
    expect(error).toMatchObject({
      code: 'lake-refused',
      message: 'the credentials of the container cannot be read',
    });
    expect(JSON.stringify([error.message, error.hint, String(error.cause)])).not.toContain('secret');
  });
});

describe('credentials', () => {
  it('are fetched again five minutes before they expire, and only once at a time', async () => {
    let now = Date.parse('2026-11-23T12:00:00Z');
    let count = 0;
    const find = (): Promise<Credentials> => {
      count += 1;
      return Promise.resolve({
        accessKeyId: `key ${count}`,
        secretAccessKey: 's',
        expiresAt: now + 60 * MINUTE_MS,
      });
    };
    const source = new CredentialSource([find], { now: () => now });
    await Promise.all([source.current(signal), source.current(signal)]);
    now += 54 * MINUTE_MS;
    expect(await source.current(signal)).toMatchObject({ accessKeyId: 'key 1' });
    now += 2 * MINUTE_MS;
    const both = await Promise.all([source.current(signal), source.current(signal)]);
    expect(both.map(({ accessKeyId }) => accessKeyId)).toEqual(['key 2', 'key 2']);
  });

  it('lose the line break that files with one secret end with', async () => {
    const keys = { AWS_ACCESS_KEY_ID: 'E\n', AWS_SECRET_ACCESS_KEY: ' e\r\n', AWS_SESSION_TOKEN: 't\n' };
    const expected = { accessKeyId: 'E', secretAccessKey: 'e', sessionToken: 't' };
    expect(await found(keys)).toEqual(expected);
  });

  it.each([
    ['AWS_ACCESS_KEY_ID', 'HIDDEN\nHIDDEN'],
    ['AWS_SECRET_ACCESS_KEY', 'HIDDEN\tHIDDEN'],
    ['AWS_SESSION_TOKEN', 'HIDDEN€HIDDEN'],
    ['AWS_SESSION_TOKEN', '\n'],
  ])('are refused with characters that a header cannot carry, and not shown: %s %j', async (name, value) => {
    const error = await refusal(found({ AWS_ACCESS_KEY_ID: 'E', AWS_SECRET_ACCESS_KEY: 'e', [name]: value }));
    expect(error.code).toBe('lake-refused');
    expect(error.hint).toContain(`set ${name} again`);
    expect(inspect(error)).not.toContain('HIDDEN');
  });

  it('are looked for again after a failure', async () => {
    let count = 0;
    const find = (): Promise<Credentials | undefined> => {
      count += 1;
      return Promise.resolve(count === 1 ? undefined : { accessKeyId: 'A', secretAccessKey: 's' });
    };
    const source = new CredentialSource([find], { now: () => 0 });
    await refusal(source.current(signal));
    expect(await source.current(signal)).toMatchObject({ accessKeyId: 'A' });
  });

  it('are read again when the server calls their token expired, and the request is repeated', async () => {
    const server = await s3Server({ sessionToken: 'first' });
    const { accessKeyId, secretAccessKey } = server.options;
    const textWith = (token: string): string =>
      `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\naws_session_token = ${token}\nregion = us-east-1\nendpoint_url = ${server.url}\n`;
    const HOME = homeWith({ credentials: textWith('first') });
    const { bucket } = bucketOf({ environment: { HOME, AWS_EC2_METADATA_DISABLED: 'true' } });
    server.store('data/key', 'content');
    expect(await all(bucket.list(''))).toHaveLength(1);
    server.fault = () => {
      server.fault = undefined;
      Object.assign(server.options, { sessionToken: 'second' });
      writeFileSync(join(HOME, '.aws', 'credentials'), textWith('second'));
      return { status: 400, code: 'ExpiredToken' };
    };
    expect(await all(bucket.list(''))).toHaveLength(1);
    server.fault = () => ({ status: 400, code: 'ExpiredToken' });
    const error = await refusal(all(bucket.list('')));
    expect(error).toMatchObject({ code: 'lake-refused', hint: expect.stringContaining('expired') as string });
  });
});
