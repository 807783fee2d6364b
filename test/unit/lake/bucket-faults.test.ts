/** Faults of S3 servers, and what lies in a bucket. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { all } from '../../helpers/bucket-contract.js';
import { bucketOf, s3Server } from '../../helpers/bucket.js';
import { scratchFolder } from '../../helpers/folders.js';
import { refusal } from '../../helpers/requests.js';
import type { S3Fault, S3Record } from '../../helpers/s3-server.js';
import { errorXml } from '../../helpers/s3-xml.js';

const folder = scratchFolder();
const MIB = 1024 * 1024;
const PART_BYTES = 5 * MIB;
const LARGE = Buffer.alloc(12 * MIB, 'abcdefg');

/** The first delay before a request is repeated is longer than the longest wait. */
const IMPATIENT = { 'max-wait': ['500ms'], 'retry-max-delay': ['1s'] };

let files = 0;
function fileOf(content: Buffer | string): string {
  files += 1;
  const path = join(folder, `file-${files}`);
  writeFileSync(path, content);
  return path;
}

/** The fault for the first request that `is` describes. */
function once(
  is: (request: S3Record) => boolean,
  fault: S3Fault,
): (request: S3Record) => S3Fault | undefined {
  let isDone = false;
  return (request) => {
    if (isDone || !is(request)) return undefined;
    isDone = true;
    return fault;
  };
}

const isPut = ({ method }: S3Record): boolean => method === 'PUT';
const isComplete = ({ method, query }: S3Record): boolean => method === 'POST' && 'uploadId' in query;

describe('a request that fails once is sent again', () => {
  it.each<[string, S3Fault]>([
    ['a 500', { status: 500, code: 'InternalError' }],
    ['a 503 SlowDown', { status: 503, code: 'SlowDown' }],
    ['a slow body', { status: 400, code: 'RequestTimeout' }],
    ['a body that arrived changed', { status: 400, code: 'BadDigest' }],
    ['a concurrent operation', { status: 409, code: 'OperationAborted' }],
    ['a connection cut before the work', { cut: 'before' }],
    ['a connection cut after the work', { cut: 'after' }],
  ])('after %s', async (_, fault) => {
    const server = await s3Server();
    server.fault = once(isPut, fault);
    const { bucket } = bucketOf(server);
    const { etag } = await bucket.put('key', fileOf('content'), null);
    expect(server.objects.get('data/key')).toMatchObject({ etag, bytes: Buffer.from('content') });
    // Both attempts, before the trials of the conditions.
    const [first, second] = server.requests.filter(isPut);
    expect([first, second].map((put) => put?.headers['if-match'])).toEqual([undefined, undefined]);
    // A signature has a date and belongs to one attempt.
    expect(server.requests.every(({ headers }) => headers.authorization?.includes('Signature='))).toBe(true);
  });

  it.each<[string, S3Fault, null | undefined]>([
    ['a 200 with an error', { answer: errorXml('InternalError') }, null],
    ['an answer that is lost', { cut: 'after' }, null],
    ['an answer that is lost, without a condition', { cut: 'after' }, undefined],
    ['a 503', { status: 503, code: 'SlowDown' }, null],
  ])('also when the parts are put together: %s', async (_, fault, replaces) => {
    const server = await s3Server();
    server.fault = once(isComplete, fault);
    const { bucket } = bucketOf({ environment: server.environment, partBytes: PART_BYTES });
    await bucket.put('large', fileOf(LARGE), replaces);
    expect(server.objects.get('data/large')?.bytes.equals(LARGE)).toBe(true);
    expect(server.uploads.size).toBe(0);
    expect(server.requests.filter(({ query }) => 'partNumber' in query)).toHaveLength(3);
  });

  it('a part is repeated on its own', async () => {
    const server = await s3Server();
    server.fault = once(({ query }) => query['partNumber'] === '2', { cut: 'before' });
    const { bucket } = bucketOf({ environment: server.environment, partBytes: PART_BYTES });
    await bucket.put('large', fileOf(LARGE));
    const parts = server.requests.flatMap(({ query }) => query['partNumber'] ?? []);
    expect(parts.sort()).toEqual(['1', '2', '2', '3']);
    expect(
      server.requests
        .filter(({ query }) => 'partNumber' in query)
        .every(({ headers }) => /^[0-9a-f]{64}$/.test(String(headers['x-amz-content-sha256']))),
    ).toBe(true);
  });
});

describe('a server that does not answer', () => {
  it.each<[string, S3Fault, string]>([
    ['500', { status: 500 }, 'answered 500: InternalError'],
    ['a cut connection', { cut: 'before' }, 'after 2 attempts'],
  ])('ends the run with one line: %s', async (_, fault, text) => {
    const server = await s3Server();
    server.fault = () => fault;
    const { bucket } = bucketOf(server);
    const error = await refusal(bucket.put('key', fileOf('content')));
    expect(error).toMatchObject({ code: 'lake-unreachable', fatal: true });
    expect(error.message).toContain('s3://lake/data cannot be reached after 2 attempts: 127.0.0.1:');
    expect(error.message).toContain(text);
    expect(error.hint).toContain('--s3-endpoint');
  });

  it('is waited for if it has answered before, with one warning', async () => {
    const server = await s3Server();
    const { bucket, warnings } = bucketOf(server);
    await bucket.head('key');
    // Each round of this test has two attempts, and a fifth failure would open the breaker.
    let left = 4;
    server.fault = () => {
      left -= 1;
      return left >= 0 ? { cut: 'before' } : undefined;
    };
    await bucket.put('key', fileOf('content'));
    expect(String(server.objects.get('data/key')?.bytes)).toBe('content');
    expect(warnings).toEqual(['s3://lake/data does not answer: requests are repeated for up to 2m']);
  });

  it('is not waited for longer than --max-wait', async () => {
    const server = await s3Server();
    const { bucket, warnings } = bucketOf({ environment: server.environment, flags: IMPATIENT });
    await bucket.head('key');
    server.fault = () => ({ cut: 'before' });
    expect((await refusal(bucket.head('key'))).code).toBe('lake-unreachable');
    expect(warnings).toEqual([]);
  });

  it('leaves no parts behind', async () => {
    const server = await s3Server();
    server.fault = ({ query }) => (query['partNumber'] === '3' ? { status: 500 } : undefined);
    const { bucket } = bucketOf({ environment: server.environment, partBytes: PART_BYTES, flags: IMPATIENT });
    expect((await refusal(bucket.put('large', fileOf(LARGE)))).code).toBe('lake-unreachable');
    expect(server.uploads.size).toBe(0);
    expect(server.objects.size).toBe(0);
  });
});

describe('a refusal ends the run at once, with the next step', () => {
  it.each<[string, string, Record<string, string>, string]>([
    [
      'a wrong secret key',
      'SignatureDoesNotMatch',
      { AWS_SECRET_ACCESS_KEY: 'another+secret/key' },
      'AWS_SECRET_ACCESS_KEY',
    ],
    ['an unknown key', 'InvalidAccessKeyId', { AWS_ACCESS_KEY_ID: 'OTHER' }, 'AWS_ACCESS_KEY_ID'],
    ['a wrong session token', 'InvalidToken', { AWS_SESSION_TOKEN: 'other' }, 'AWS_SESSION_TOKEN'],
  ])('%s', async (_, name, changed, hint) => {
    const server = await s3Server();
    const { bucket } = bucketOf({ environment: { ...server.environment, ...changed } });
    const error = await refusal(all(bucket.list('')));
    expect(error).toMatchObject({ code: 'lake-refused', fatal: true });
    expect(error.message).toMatch(
      new RegExp(`^s3://lake/data: 127\\.0\\.0\\.1:\\d+ answered 40[03]: ${name}$`),
    );
    expect(error.hint).toContain(hint);
    expect(JSON.stringify([error.message, error.hint, error.stack])).not.toMatch(
      /secret\/key|wJalrX|Signature=/,
    );
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['AccessDenied', 403, 's3:PutObject'],
    ['InvalidBucketName', 400, 's3://'],
    ['AccountProblem', 403, 's3:PutObject'],
  ])('%s', async (code, status, hint) => {
    const server = await s3Server();
    server.fault = () => ({ status, code });
    const error = await refusal(bucketOf(server).bucket.put('key', fileOf('content')));
    expect(error).toMatchObject({ code: 'lake-refused' });
    expect(error.message).toContain(`answered ${status}: ${code}`);
    expect(error.hint).toContain(hint);
    expect(server.requests).toHaveLength(1);
  });

  it('a bucket that is not there', async () => {
    const server = await s3Server();
    const { bucket } = bucketOf({ environment: server.environment, address: 's3://another/data' });
    for (const request of [
      () => all(bucket.list('')),
      () => bucket.get('key', join(folder, 'none')),
      () => bucket.put('key', fileOf('x')),
    ]) {
      const error = await refusal(request());
      expect(error).toMatchObject({
        code: 'lake-refused',
        hint: expect.stringContaining('create the bucket') as string,
      });
    }
  });

  it('a clock that differs', async () => {
    const server = await s3Server({ skewMs: 20 * 60_000 });
    const error = await refusal(bucketOf(server).bucket.put('key', fileOf('content')));
    expect(error).toMatchObject({ code: 'lake-refused', hint: 'set the clock of this machine' });
  });

  it('no credentials: no request is sent', async () => {
    const server = await s3Server();
    const environment = {
      ...server.environment,
      AWS_ACCESS_KEY_ID: '',
      AWS_SECRET_ACCESS_KEY: '',
      HOME: folder,
    };
    const error = await refusal(all(bucketOf({ environment }).bucket.list('')));
    expect(error).toMatchObject({
      code: 'lake-refused',
      hint: expect.stringContaining('AWS_PROFILE') as string,
    });
    expect(server.requests).toEqual([]);
  });
});

it.each<[string, S3Fault]>([
  ['a refusal', { status: 403, code: 'SignatureDoesNotMatch' }],
  ['a cut connection', { cut: 'before' }],
  ['a wrong listing', { answer: 'busy' }],
])('observers and errors have no secret and no signature: %s', async (_, fault) => {
  const server = await s3Server({ sessionToken: 'THE+TOKEN' });
  const seen: unknown[] = [];
  const see = (...given: unknown[]): void => void seen.push(given);
  const { bucket } = bucketOf({
    environment: server.environment,
    observer: { attempt: see, retry: see, event: see, warn: see },
    flags: IMPATIENT,
  });
  await bucket.put('key', fileOf('content'));
  server.fault = () => fault;
  seen.push(await refusal(all(bucket.list(''))));
  const text = inspect(seen, { depth: Infinity, showHidden: true, maxArrayLength: null });
  expect(text).toContain('list-type=2');
  expect(text).not.toMatch(/wJalrX|THE\+TOKEN|THE%2BTOKEN|Signature=|authorization/i);
});

/** As a session token of AWS: long, and valid as the code of an error. */
const TOKEN = 'IQoJb3JpZ2luX2VjEHYaCXVzLWVhc3Q'.repeat(4).replaceAll('_', '0');

it.each<[string, S3Fault]>([
  ['as the code of an error', { status: 403, code: TOKEN.slice(0, 60) }],
  ['in a text', { answer: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/, Signature=${'5'.repeat(64)}` }],
  ['in a text that is cut', { answer: `you sent ${TOKEN}` }],
  [
    'in a redirect',
    {
      status: 307,
      code: 'x',
      headers: { location: `http://other/${TOKEN}?X-Amz-Signature=${'5'.repeat(64)}` },
    },
  ],
])('a server that answers with what it was sent: nothing of it is shown %s', async (_, fault) => {
  const server = await s3Server({ sessionToken: TOKEN });
  const { bucket } = bucketOf({ environment: server.environment, flags: IMPATIENT });
  server.fault = () => fault;
  const error = await refusal(all(bucket.list('')));
  expect(error.message).toContain('(not shown)');
  for (let each: unknown = error; each instanceof Error; each = each.cause)
    expect(`${each.message} ${each.stack}`).not.toMatch(/IQoJb3JpZ2lu|55555|AKIDEXAMPLE/);
});

describe('a bucket in another region', () => {
  it('is found, with one warning that names the flag', async () => {
    const server = await s3Server({ region: 'eu-west-3' });
    const environment = { ...server.environment, AWS_REGION: 'us-east-1' };
    const { bucket, warnings } = bucketOf({ environment });
    await bucket.put('key', fileOf('content'));
    expect(await all(bucket.list(''))).toHaveLength(1);
    expect(warnings).toEqual([
      'the bucket lake is in the region eu-west-3, not in us-east-1: requests go there; give --s3-region eu-west-3',
    ]);
  });

  it('is found after a 301 with its header', async () => {
    const server = await s3Server();
    const headers = { 'x-amz-bucket-region': 'us-west-2' };
    server.fault = once(() => true, { status: 301, code: 'PermanentRedirect', headers });
    const { bucket, warnings } = bucketOf(server);
    const error = await refusal(all(bucket.list('')));
    // The server of this test stays in us-east-1 and sends the client back.
    expect(error.message).toContain('AuthorizationHeaderMalformed');
    expect(warnings).toHaveLength(2);
  });
});

describe('conditional writes', () => {
  it('are compared before the write where the server refuses them, with one warning', async () => {
    const server = await s3Server({ conditions: 'refused' });
    const { bucket, warnings } = bucketOf(server);
    await Promise.all(['a', 'b', 'c'].map((key) => bucket.put(key, fileOf(key), null)));
    expect(server.objects.size).toBe(3);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('no conditional writes');
  });

  it.each(['ignored', 'absence', 'version'] as const)(
    'are compared before the write where the server ignores them: %s',
    async (conditions) => {
      const server = await s3Server({ conditions });
      const { bucket, warnings } = bucketOf(server);
      const { etag } = await bucket.put('a', fileOf('ours'), null);
      await bucket.put('b', fileOf('ours'), null);
      expect(warnings).toEqual([expect.stringContaining('no conditional writes')]);
      server.store('data/a', 'theirs');
      expect((await refusal(bucket.put('a', fileOf('ours again'), etag))).code).toBe('lake-conflict');
      expect(String(server.objects.get('data/a')?.bytes)).toBe('theirs');
    },
  );

  it('are compared if the server refuses an upload in parts whose condition holds', async () => {
    const server = await s3Server();
    const { bucket } = bucketOf({ environment: server.environment, partBytes: PART_BYTES });
    const { etag } = await bucket.put('key', fileOf('first'));
    // As Swift does.
    server.fault = (request) =>
      isComplete(request) && request.headers['if-match'] !== undefined
        ? { status: 412, code: 'PreconditionFailed' }
        : undefined;
    await bucket.put('key', fileOf(LARGE), etag);
    expect(server.objects.get('data/key')?.bytes.equals(LARGE)).toBe(true);
    expect(server.uploads.size).toBe(0);
    const error = await refusal(bucket.put('key', fileOf(LARGE.subarray(1)), etag));
    expect(error.code).toBe('lake-conflict');
  });

  it('keep an object that another writer has changed between two attempts', async () => {
    const server = await s3Server();
    server.fault = once(isPut, { cut: 'after' });
    const { bucket } = bucketOf(server);
    const putting = bucket.put('key', fileOf('ours'), null);
    const changed = new Promise<void>((resolve) => {
      const { fault } = server;
      server.fault = (request) => {
        const answer = fault?.(request);
        if (request.method === 'PUT' && answer === undefined) {
          server.store('data/key', 'theirs');
          resolve();
        }
        return answer;
      };
    });
    expect((await refusal(putting)).code).toBe('lake-conflict');
    await changed;
    expect(String(server.objects.get('data/key')?.bytes)).toBe('theirs');
  });
});

describe('a confirmed put', () => {
  it('is repeated if its object has another size', async () => {
    const server = await s3Server();
    server.fault = once(isPut, { storedBytes: 3 });
    const { bucket } = bucketOf(server);
    await bucket.put('key', fileOf('content'), null);
    expect(String(server.objects.get('data/key')?.bytes)).toBe('content');
  });

  it('fails if the repetition has another size too', async () => {
    const server = await s3Server();
    server.fault = (request) => (isPut(request) ? { storedBytes: 3 } : undefined);
    const error = await refusal(bucketOf(server).bucket.put('key', fileOf('content')));
    expect(error).toMatchObject({ code: 'length-mismatch' });
    expect(error.message).toContain('3 of 7 bytes are stored, although the server confirmed them');
  });

  it('counts if another writer has replaced its object since', async () => {
    const server = await s3Server();
    server.fault = (request) => {
      if (request.method === 'HEAD') server.store('data/key', 'of another writer');
      return undefined;
    };
    const { etag } = await bucketOf(server).bucket.put('key', fileOf('content'));
    expect(etag).toBe(createHash('md5').update('content').digest('hex'));
  });
});

describe('a received object', () => {
  it('is fetched again if its bytes are not those of its digest', async () => {
    const server = await s3Server();
    const sha256 = createHash('sha256').update('content').digest('hex');
    server.store('data/key', 'content', { 'x-amz-meta-sha256': sha256 });
    server.fault = once(() => true, { answer: 'CONTENT', headers: { 'x-amz-meta-sha256': sha256 } });
    const path = join(folder, 'received');
    await bucketOf(server).bucket.get('key', path);
    expect(readFileSync(path, 'utf8')).toBe('content');
    expect(server.requests).toHaveLength(2);
  });

  it('is continued after the part that arrived before its connection was cut', async () => {
    const server = await s3Server();
    const content = Buffer.alloc(20 * MIB, 'abcdefg');
    const sha256 = createHash('sha256').update(content).digest('hex');
    server.store('data/key', content, { 'x-amz-meta-sha256': sha256 });
    server.fault = once(() => true, { cut: 'middle' });
    const path = join(folder, 'continued');
    await bucketOf(server).bucket.get('key', path);
    expect(readFileSync(path).equals(content)).toBe(true);
    expect(server.requests[1]?.headers.range).toMatch(/^bytes=\d{7,}-$/);
  });

  it('is given with wrong bytes if they arrive twice, and the caller compares them itself', async () => {
    const server = await s3Server();
    server.store('data/key', 'content', { 'x-amz-meta-sha256': '0'.repeat(64) });
    const path = join(folder, 'damaged');
    await bucketOf(server).bucket.get('key', path, { compares: true });
    expect(readFileSync(path, 'utf8')).toBe('content');
    expect(server.requests).toHaveLength(2);
  });

  it('is refused if its bytes stay wrong', async () => {
    const server = await s3Server();
    server.store('data/key', 'content', { 'x-amz-meta-sha256': '0'.repeat(64) });
    const path = join(folder, 'refused');
    const error = await refusal(bucketOf(server).bucket.get('key', path));
    expect(error.code).toBe('body-damaged');
    expect(existsSync(path)).toBe(false);
  });
});

const object = '<Contents><Key>data/key</Key><Size>1</Size></Contents>';

describe('a listing', () => {
  it('leaves out keys that cannot be paths of files, with one warning', async () => {
    const server = await s3Server();
    const keys = [
      'a//b',
      '../up',
      'a/../b',
      './a',
      'folder/',
      String.raw`a\b`,
      'new\nline',
      'c1\u0085',
      'good/key',
    ];
    for (const key of keys) server.store(`data/${key}`, 'x');
    server.store('database', 'x');
    const { bucket, warnings } = bucketOf(server);
    expect((await all(bucket.list(''))).map(({ key }) => key)).toEqual(['good/key']);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('are ignored');
  });

  const page = (content: string): string =>
    `<?xml version="1.0"?><ListBucketResult>${content}</ListBucketResult>`;
  it.each([
    ['an entity', `<!DOCTYPE a [<!ENTITY x "y">]>${page('<IsTruncated>false</IsTruncated>')}`],
    ['no XML', 'busy'],
    ['a cut document', page('').slice(0, -3)],
    [
      'a key outside of the prefix',
      page(`<IsTruncated>false</IsTruncated>${object.replace('data/', '/etc/')}`),
    ],
    ['no next page', page(`<IsTruncated>true</IsTruncated>${object}`)],
    [
      'the same next page',
      page(`<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>${object}`),
    ],
    ['no size', page('<IsTruncated>false</IsTruncated><Contents><Key>data/key</Key></Contents>')],
    ['a document without end', page(`<Name>${'x'.repeat(17 * MIB)}</Name><IsTruncated>false</IsTruncated>`)],
  ])('is refused with %s', async (_, answer) => {
    const server = await s3Server();
    server.fault = () => ({ answer });
    const error = await refusal(all(bucketOf(server).bucket.list('')));
    expect(['listing-malformed', 'length-mismatch']).toContain(error.code);
    expect(error.message.length).toBeLessThan(300);
  });

  it('names the lake and the next step if it is empty', async () => {
    const server = await s3Server();
    server.fault = () => ({ answer: '' });
    const error = await refusal(all(bucketOf(server).bucket.list('')));
    expect(error.message).toContain('s3://lake/data');
    expect(error.hint).toContain('--s3-endpoint');
  });

  it('is a failure of the server if it is an error document with status 200', async () => {
    const server = await s3Server();
    server.fault = () => ({ answer: '<Error><Code>InternalError</Code></Error>' });
    const error = await refusal(all(bucketOf(server).bucket.list('')));
    expect(error.code).toBe('lake-unreachable');
  });
});

it.each([
  ['', object],
  [', all pages empty', ''],
])('a list%s ends with an error if each page has a new mark and no new name', async (_, content) => {
  const server = await s3Server();
  server.fault = () => ({
    answer: `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>mark-${server.requests.length}</NextContinuationToken>${content}</ListBucketResult>`,
  });
  const error = await refusal(all(bucketOf(server).bucket.list('')));
  expect(error.code).toBe('listing-malformed');
  expect(error.message).toContain('has no end');
});

it('a list may have empty pages', async () => {
  const server = await s3Server({ pageSize: 1 });
  for (const key of ['a', 'b', 'c']) server.store(`data/${key}`, 'x');
  const { bucket } = bucketOf(server);
  server.fault = once(({ query }) => 'continuation-token' in query, {
    answer: `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${Buffer.from('data/a').toString('base64')}</NextContinuationToken></ListBucketResult>`,
  });
  expect((await all(bucket.list(''))).map(({ key }) => key)).toEqual(['a', 'b', 'c']);
});
