/** Where the credentials of a bucket come from, and when they are fetched again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CredentialSource } from '../../src/s3/credentials.js';
import type { Credentials } from '../../src/s3/credentials.js';
import { findCredentials } from '../../src/s3/find-credentials.js';
import { CryptodlError } from '../../src/model/errors.js';
import { all } from '../helpers/bucket-contract.js';
import { bucketOf, s3Server } from '../helpers/bucket.js';
import { scratchFolder } from '../helpers/folders.js';
import { refusal } from '../helpers/requests.js';

const folder = scratchFolder();
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

/** Node's error for a package that is not installed; vitest has another one. */
const missing = (): Promise<unknown> =>
  Promise.reject(Object.assign(new Error('no package'), { code: 'ERR_MODULE_NOT_FOUND' }));

function found(environment: Readonly<Record<string, string>>, load = missing): Promise<Credentials> {
  const find = findCredentials({ HOME: homeWith({}), ...environment }, load);
  return new CredentialSource(find, { now: () => Date.now() }).current();
}

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
    expect(error).toMatchObject({
      code: 'lake-refused',
      message: 'no credentials for the bucket were found',
      hint: expect.stringContaining('AWS_PROFILE') as string,
    });
  });

  it('the package of AWS, for single sign-on, roles, containers and instances', async () => {
    const config = '[profile role]\nrole_arn = arn\naws_access_key_id = R\naws_secret_access_key = r\n';
    const HOME = homeWith({ config });
    const load = (): Promise<unknown> =>
      Promise.resolve({
        fromNodeProviderChain:
          ({ profile }: { profile: string }) =>
          () =>
            profile === 'expired'
              ? Promise.reject(new Error('the session has expired'))
              : Promise.resolve({
                  accessKeyId: `package ${profile}`,
                  secretAccessKey: 's',
                  expiration: new Date('2026-11-23T20:00:00Z'),
                }),
      });
    expect(await found({}, load)).toMatchObject({ accessKeyId: 'package default' });
    expect(await found({ HOME, AWS_PROFILE: 'role' }, load)).toMatchObject({
      accessKeyId: 'package role',
      expiresAt: Date.parse('2026-11-23T20:00:00Z'),
    });
    expect(await refusal(found({ AWS_PROFILE: 'expired' }, load))).toMatchObject({
      code: 'lake-refused',
      message: 'no credentials for the bucket were found: the session has expired',
    });
    expect(await refusal(found({}))).toMatchObject({
      code: 'lake-refused',
      message: 'no credentials for the bucket were found',
      hint: expect.stringContaining('npm install @aws-sdk/credential-providers ') as string,
    });
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
    const source = new CredentialSource(find, { now: () => now });
    await Promise.all([source.current(), source.current()]);
    now += 54 * MINUTE_MS;
    expect(await source.current()).toMatchObject({ accessKeyId: 'key 1' });
    now += 2 * MINUTE_MS;
    const both = await Promise.all([source.current(), source.current()]);
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
    const find = (): Promise<Credentials> => {
      count += 1;
      return count === 1
        ? Promise.reject(new CryptodlError('lake-refused', 'no keys'))
        : Promise.resolve({ accessKeyId: 'A', secretAccessKey: 's' });
    };
    const source = new CredentialSource(find, { now: () => 0 });
    await refusal(source.current());
    expect(await source.current()).toMatchObject({ accessKeyId: 'A' });
  });

  it('are read again when the server calls their token expired, and the request is repeated', async () => {
    const server = await s3Server({ sessionToken: 'first' });
    const { accessKeyId, secretAccessKey } = server.options;
    const textWith = (token: string): string =>
      `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\naws_session_token = ${token}\nregion = us-east-1\nendpoint_url = ${server.url}\n`;
    const HOME = homeWith({ credentials: textWith('first') });
    const { bucket } = bucketOf({ environment: { HOME } });
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
