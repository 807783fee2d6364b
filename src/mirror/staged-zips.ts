/**
 * The zips of a job between the worker that fetches them and the worker that converts them, beside a lake in a bucket. Each zip has a
 * record with its digest, which is put after it: a zip without a record is not there.
 */
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import * as v from 'valibot';
import { isStagedZip, STAGED_ZIPS } from '../lake/layout.js';
import type { LakeBucket } from '../s3/bucket.js';
import { sha256Of } from '../s3/bucket.js';
import { isLabel } from '../text/label.js';

/** The object of the archive, as the listing had it. */
export interface ListedObject {
  readonly key: string;
  readonly etag?: string | undefined;
  readonly bytes?: number | undefined;
}

const Digest = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const Label = v.pipe(v.string(), v.check(isLabel));

/** What the worker that fetched a zip knows about it. */
const ZipRecord = v.object({
  bytes: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  sha256: Digest,
  verified: v.picklist(['sidecar', 'etag', 'crc']),
  staleSidecar: v.exactOptional(Digest),
  etag: v.exactOptional(Label),
  lastModified: v.exactOptional(Label),
});
export type ZipRecord = Readonly<v.InferOutput<typeof ZipRecord>>;

const Listed = v.object({ key: v.string(), etag: v.optional(v.string()), bytes: v.optional(v.number()) });
const Document = v.union([
  v.object({ listed: Listed, absent: v.literal(true) }),
  v.object({ listed: Listed, ...ZipRecord.entries }),
]);

export class StagedZips {
  readonly #bucket: LakeBucket;
  readonly #folder: string;
  /** Sizes by name. */
  readonly #sizes = new Map<string, number>();

  private constructor(bucket: LakeBucket, folder: string) {
    this.#bucket = bucket;
    this.#folder = folder;
  }

  /** Sends one request for a usual job. `job`: its name. */
  static async open(bucket: LakeBucket, job: string): Promise<StagedZips> {
    const staged = new StagedZips(bucket, `${STAGED_ZIPS}/${digest(job)}`);
    for await (const { key, bytes } of bucket.list(`${staged.#folder}/`))
      if (isStagedZip(key)) staged.#sizes.set(key.slice(staged.#folder.length + 1), bytes);
    return staged;
  }

  /**
   * The record of a zip that is there for this version of the object; `absent` if the archive did not have it. `temporary`: the path of a file
   * that this function may write. The bytes of the zip are not compared yet.
   */
  async find(object: ListedObject, temporary: string): Promise<ZipRecord | 'absent' | undefined> {
    const name = digest(object.key);
    if (!this.#sizes.has(`${name}.json`)) return undefined;
    try {
      if ((await this.#bucket.get(this.#keyOf(`${name}.json`), temporary, { compares: true })) === undefined)
        return undefined;
      const record = recordIn(await readFile(temporary, 'utf8'), object);
      if (record === undefined || record === 'absent') return record;
      return this.#sizes.get(`${name}.zip`) === record.bytes ? record : undefined;
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Writes a zip to a file. False: the bucket does not have it, or has other bytes. */
  async take({ key }: ListedObject, { bytes, sha256 }: ZipRecord, path: string): Promise<boolean> {
    const found = await this.#bucket.get(this.#keyOf(`${digest(key)}.zip`), path, { compares: true });
    if (found?.bytes !== bytes) return false;
    return (await sha256Of(path)) === sha256;
  }

  /** `path`: the file of the zip. `temporary`: the path of a file that this function may write. */
  async put(object: ListedObject, record: ZipRecord, path: string, temporary: string): Promise<void> {
    const name = digest(object.key);
    await this.#bucket.put(this.#keyOf(`${name}.zip`), path);
    this.#sizes.set(`${name}.zip`, record.bytes);
    await this.#putRecord(object, record, temporary);
  }

  async putAbsence(object: ListedObject, temporary: string): Promise<void> {
    await this.#putRecord(object, { absent: true }, temporary);
  }

  async #putRecord(object: ListedObject, record: object, temporary: string): Promise<void> {
    const name = digest(object.key);
    const { key, etag, bytes } = object;
    try {
      await writeFile(temporary, JSON.stringify({ listed: { key, etag, bytes }, ...record }));
      await this.#bucket.put(this.#keyOf(`${name}.json`), temporary);
    } finally {
      await rm(temporary, { force: true });
    }
    this.#sizes.set(`${name}.json`, 0);
  }

  /** Removes the zips of these objects, their records first. */
  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.#removeNames([`${digest(key)}.json`, `${digest(key)}.zip`]);
  }

  /** Removes all zips of the job. */
  async clear(): Promise<void> {
    await this.#removeNames([...this.#sizes.keys()].toSorted());
  }

  async #removeNames(names: readonly string[]): Promise<void> {
    for (const name of names) {
      if (this.#sizes.has(name)) await this.#bucket.remove(this.#keyOf(name));
      this.#sizes.delete(name);
    }
  }

  #keyOf(name: string): string {
    return `${this.#folder}/${name}`;
  }
}

/** Names of jobs and keys may have any characters. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Undefined for a record of another version of the object, and for any other text. */
function recordIn(text: string, object: ListedObject): ZipRecord | 'absent' | undefined {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Document), text);
  if (!parsed.success) return undefined;
  const { listed, ...record } = parsed.output;
  if (listed.key !== object.key || listed.etag !== object.etag || listed.bytes !== object.bytes)
    return undefined;
  return 'absent' in record ? 'absent' : record;
}
