/** A strict S3 server in memory with one bucket. It checks signatures and digests, keeps conditions, and fails on request. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkSignature, S3Refusal } from './s3-signature.js';
import { contentsXml, errorXml, escaped, wrapped } from './s3-xml.js';

export interface StoredObject {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Headers `x-amz-meta-…`. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly lastModified: number;
}

interface Upload {
  readonly key: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly startedAt: number;
  readonly parts: Map<number, Buffer>;
}

/** A request as it came over the wire. */
export interface S3Record {
  readonly method: string;
  readonly key: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
  /** 0 until it is answered, and for a connection that was cut. */
  status: number;
}

/**
 * What goes wrong with a request. `status` and `code`: it is refused. `cut`: the connection is closed before (`before`) or after
 * (`after`) the work is done, or after half of the answer (`middle`). `storedBytes`: only so many bytes of a put are stored, and it is confirmed. `answer`: this document
 * with status 200 in place of the answer, after the work is done. `delayMs`: the answer comes later.
 */
export interface S3Fault {
  readonly status?: number;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cut?: 'before' | 'middle' | 'after';
  readonly storedBytes?: number;
  readonly answer?: string;
  readonly delayMs?: number;
}

export interface S3ServerOptions {
  readonly bucket?: string;
  /** `refused`: 501, as Swift. `ignored`: the headers have no effect. `absence`: `If-Match` has none, `version`: `If-None-Match`. */
  readonly conditions?: 'kept' | 'refused' | 'ignored' | 'absence' | 'version';
  /** Objects and uploads of one page. */
  readonly pageSize?: number;
  readonly leastPartBytes?: number;
  readonly region?: string;
  readonly sessionToken?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  /** The clock of the server minus that of the machine. */
  readonly skewMs?: number;
}

const LEAST_PART_BYTES = 5 * 1024 * 1024;

export class S3Server {
  readonly bucket: string;
  readonly objects = new Map<string, StoredObject>();
  readonly uploads = new Map<string, Upload>();
  readonly requests: S3Record[] = [];
  url = '';
  /** Called for each request with a valid signature. The request waits for a promise. */
  fault: ((request: S3Record) => S3Fault | undefined | Promise<S3Fault | undefined>) | undefined;
  /** The objects that listings show; by default the current ones. */
  listed: ReadonlyMap<string, StoredObject> | undefined;
  readonly options: Required<Omit<S3ServerOptions, 'sessionToken'>> & Pick<S3ServerOptions, 'sessionToken'>;
  readonly #server = createServer((request, response) => {
    void this.#serve(request, response);
  });

  constructor(options: S3ServerOptions = {}) {
    this.options = {
      bucket: 'lake',
      conditions: 'kept',
      pageSize: 1000,
      leastPartBytes: LEAST_PART_BYTES,
      region: 'us-east-1',
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
      skewMs: 0,
      ...options,
    };
    this.bucket = this.options.bucket;
  }

  /** The variables with which a client finds the server and its credentials. */
  get environment(): Record<string, string> {
    const { accessKeyId, secretAccessKey, sessionToken, region } = this.options;
    return {
      AWS_ENDPOINT_URL_S3: this.url,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: region,
      ...(sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: sessionToken }),
    };
  }

  async listen(port = 0): Promise<this> {
    await new Promise<void>((resolve) => {
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Stores an object without a request, as if it were put an hour ago. */
  store(
    key: string,
    content: Buffer | string,
    metadata: Readonly<Record<string, string>> = {},
    ageMs = 3_600_000,
  ): StoredObject {
    const bytes = Buffer.from(content);
    const lastModified = this.#now() - ageMs;
    const object = { bytes, etag: md5(bytes).toString('hex'), metadata, lastModified };
    this.objects.set(key, object);
    return object;
  }

  #now(): number {
    return Date.now() + this.options.skewMs;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks);
    const { method = '', url: target = '', headers } = request;
    const { pathname, searchParams } = new URL(target, 'http://s3');
    const [, bucket = '', ...rest] = pathname.split('/');
    const record: S3Record = {
      method,
      key: decodeURIComponent(rest.join('/')),
      query: Object.fromEntries(searchParams),
      headers,
      bytes: body.length,
      status: 0,
    };
    this.requests.push(record);
    let answer: Answer;
    let fault: S3Fault | undefined;
    try {
      if (headers['transfer-encoding'] !== undefined) throw new S3Refusal(411, 'MissingContentLength');
      checkSignature({ method, target, headers, body }, this.options, this.#now());
      if (bucket !== this.bucket) throw new S3Refusal(404, 'NoSuchBucket');
      fault = await this.fault?.(record);
      if (fault?.delayMs !== undefined) await sleep(fault.delayMs);
      if (fault?.cut === 'before') {
        request.socket.destroy();
        return;
      }
      if (fault?.status !== undefined) throw new S3Refusal(fault.status, fault.code ?? 'InternalError');
      answer = this.#answer(
        record,
        fault?.storedBytes === undefined ? body : body.subarray(0, fault.storedBytes),
      );
      if (fault?.answer !== undefined) answer = { status: 200, body: fault.answer };
    } catch (error) {
      if (!(error instanceof S3Refusal)) throw error;
      answer = { status: error.status, body: errorXml(error.code, error.more) };
    }
    if (fault?.cut === 'after') {
      request.socket.destroy();
      return;
    }
    record.status = answer.status;
    const content = Buffer.from(answer.body ?? '');
    response.writeHead(answer.status, {
      date: new Date(this.#now()).toUTCString(),
      'content-type': 'application/xml',
      'content-length': content.length,
      ...answer.headers,
      ...fault?.headers,
    });
    if (fault?.cut === 'middle') {
      response.write(content.subarray(0, content.length / 2), () => {
        request.socket.destroy();
      });
      return;
    }
    response.end(method === 'HEAD' || answer.status === 204 ? undefined : content);
  }

  #answer(record: S3Record, body: Buffer): Answer {
    const { method, key, query } = record;
    if (key === '' && method === 'GET') return this.#list(query);
    if ('uploadId' in query || 'uploads' in query) return this.#multipart(record, body);
    switch (method) {
      case 'PUT':
        this.#check(record);
        return { status: 200, headers: { etag: `"${this.store(key, body, metadataOf(record), 0).etag}"` } };
      case 'GET':
      case 'HEAD':
        return this.#read(record);
      case 'DELETE':
        if (this.objects.has(key)) this.#check(record);
        this.objects.delete(key);
        return { status: 204 };
      default:
        throw new S3Refusal(405, 'MethodNotAllowed');
    }
  }

  #read({ key, headers }: S3Record): Answer {
    const object = this.objects.get(key);
    if (object === undefined) throw new S3Refusal(404, 'NoSuchKey');
    const [, from] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? [];
    const etag = `"${object.etag}"`;
    const isRest = from !== undefined && headers['if-range'] === etag;
    const { length } = object.bytes;
    return {
      status: isRest ? 206 : 200,
      body: isRest ? object.bytes.subarray(Number(from)) : object.bytes,
      headers: {
        etag,
        'last-modified': new Date(object.lastModified).toUTCString(),
        ...object.metadata,
        ...(isRest ? { 'content-range': `bytes ${from}-${length - 1}/${length}` } : {}),
      },
    };
  }

  /** Throws for a condition that does not hold. */
  #check({ key, headers }: S3Record): void {
    const { conditions } = this.options;
    const absent = conditions === 'version' ? undefined : headers['if-none-match'];
    const same = conditions === 'absence' ? undefined : headers['if-match'];
    if (absent === undefined && same === undefined) return;
    if (conditions === 'refused') throw new S3Refusal(501, 'NotImplemented');
    if (conditions === 'ignored') return;
    const there = this.objects.get(key);
    if (absent !== undefined && absent !== '*') throw new S3Refusal(501, 'NotImplemented');
    if (absent === '*' && there !== undefined) throw new S3Refusal(412, 'PreconditionFailed');
    if (same !== undefined && there === undefined) throw new S3Refusal(404, 'NoSuchKey');
    if (same !== undefined && same !== `"${there?.etag}"`) throw new S3Refusal(412, 'PreconditionFailed');
  }

  #list(query: Readonly<Record<string, string>>): Answer {
    if (query['list-type'] !== '2') throw new S3Refusal(501, 'NotImplemented');
    const { prefix = '', delimiter = '' } = query;
    const token = query['continuation-token'];
    const after = token === undefined ? undefined : Buffer.from(token, 'base64');
    const most = Math.min(Number(query['max-keys'] ?? this.options.pageSize), this.options.pageSize);
    const keys = [...(this.listed ?? this.objects).keys()]
      .filter((key) => key.startsWith(prefix))
      .map((key) => Buffer.from(key))
      .sort((one, other) => Buffer.compare(one, other))
      .filter((key) => after === undefined || Buffer.compare(key, after) > 0)
      .map(String);
    const entries: string[] = [];
    const folders = new Set<string>();
    let last = '';
    for (const key of keys) {
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      const folder = end < 0 ? undefined : key.slice(0, end + delimiter.length);
      if (folder !== undefined && folders.has(folder)) {
        last = key;
        continue;
      }
      if (entries.length === most) break;
      if (folder !== undefined) folders.add(folder);
      const object = (this.listed ?? this.objects).get(key);
      if (folder !== undefined) entries.push(wrapped('CommonPrefixes', { Prefix: named(folder, query) }));
      else if (object !== undefined) entries.push(contentsXml(named(key, query), object));
      last = key;
    }
    const isTruncated = last !== (keys.at(-1) ?? '');
    return {
      status: 200,
      body: `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${this.bucket}</Name><Prefix>${escaped(named(prefix, query))}</Prefix><KeyCount>${entries.length}</KeyCount><MaxKeys>${most}</MaxKeys>${query['encoding-type'] === 'url' ? '<EncodingType>url</EncodingType>' : ''}<IsTruncated>${isTruncated}</IsTruncated>${isTruncated ? `<NextContinuationToken>${Buffer.from(last).toString('base64')}</NextContinuationToken>` : ''}${entries.join('')}</ListBucketResult>`,
    };
  }

  #multipart(record: S3Record, body: Buffer): Answer {
    const { method, key, query } = record;
    if (method === 'POST' && 'uploads' in query) {
      const id = randomUUID();
      this.uploads.set(id, { key, metadata: metadataOf(record), startedAt: this.#now(), parts: new Map() });
      return {
        status: 200,
        body: wrapped('InitiateMultipartUploadResult', { Bucket: this.bucket, Key: key, UploadId: id }),
      };
    }
    const id = query['uploadId'] ?? '';
    const upload = this.uploads.get(id);
    if (upload?.key !== key) throw new S3Refusal(404, 'NoSuchUpload');
    if (method === 'DELETE') {
      this.uploads.delete(id);
      return { status: 204 };
    }
    if (method === 'PUT') {
      const number = Number(query['partNumber']);
      if (!Number.isInteger(number) || number < 1 || number > 10_000)
        throw new S3Refusal(400, 'InvalidArgument');
      upload.parts.set(number, body);
      return { status: 200, headers: { etag: `"${md5(body).toString('hex')}"` } };
    }
    if (method !== 'POST') throw new S3Refusal(405, 'MethodNotAllowed');
    return this.#complete(record, { id, ...upload }, body.toString());
  }

  #complete(
    record: S3Record,
    { id, key, metadata, parts }: Upload & { readonly id: string },
    xml: string,
  ): Answer {
    const sent = [...xml.matchAll(/<Part>(.*?)<\/Part>/g)].map(([, part = '']) => ({
      number: Number(/<PartNumber>(\d+)<\/PartNumber>/.exec(part)?.[1]),
      etag: /<ETag>(?:"|&quot;)?([0-9a-f]{32})(?:"|&quot;)?<\/ETag>/.exec(part)?.[1],
    }));
    if (sent.length === 0) throw new S3Refusal(400, 'MalformedXML');
    if (sent.some(({ number }, index) => number <= (sent[index - 1]?.number ?? 0)))
      throw new S3Refusal(400, 'InvalidPartOrder');
    const bodies = sent.map(({ number, etag }) => {
      const part = parts.get(number);
      if (part === undefined || md5(part).toString('hex') !== etag) throw new S3Refusal(400, 'InvalidPart');
      return part;
    });
    if (bodies.slice(0, -1).some(({ length }) => length < this.options.leastPartBytes))
      throw new S3Refusal(400, 'EntityTooSmall');
    this.#check(record);
    const etag = `${md5(Buffer.concat(bodies.map(md5))).toString('hex')}-${bodies.length}`;
    this.objects.set(key, { bytes: Buffer.concat(bodies), etag, metadata, lastModified: this.#now() });
    this.uploads.delete(id);
    return {
      status: 200,
      body: wrapped('CompleteMultipartUploadResult', { Bucket: this.bucket, Key: key, ETag: `"${etag}"` }),
    };
  }
}

interface Answer {
  readonly status: number;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

function md5(bytes: Buffer): Buffer {
  return createHash('md5').update(bytes).digest();
}

function metadataOf({ headers }: S3Record): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith('x-amz-meta-') && typeof value === 'string' ? [[name, value]] : [],
    ),
  );
}

/** A name as the request asks for it. */
function named(name: string, query: Readonly<Record<string, string>>): string {
  return query['encoding-type'] === 'url'
    ? encodeURIComponent(name).replaceAll('%2F', '/').replaceAll('%20', '+')
    : name;
}
