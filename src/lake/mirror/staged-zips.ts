/**
 * The zips of a job between the worker that fetches them and the worker that converts them, beside a lake in a bucket. The metadata of each
 * object have a record with the digest of the zip. An object of the archive that was absent is an empty zip.
 */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { STAGED_ZIPS } from '../layout.js';
import { fileFacts } from '../../files/file-facts.js';
import type { LakeBucket } from '../s3/bucket.js';
import { isLabel } from '../../text/json.js';

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
export type StagedObject = Readonly<v.InferOutput<typeof Listed>>;
const Document = v.union([
  v.object({ listed: Listed, absent: v.literal(true) }),
  v.object({ listed: Listed, ...ZipRecord.entries }),
]);

/** Other objects in the folder of a job stay. */
const NAME = /\/[0-9a-f]{32}\.zip$/;

export class StagedZips {
  readonly #keys = new Set<string>();

  private constructor(
    private readonly bucket: LakeBucket,
    private readonly folder: string,
  ) {}

  /** Sends one request for a usual job. `job`: its name. */
  static async open(bucket: LakeBucket, job: string): Promise<StagedZips> {
    const staged = new StagedZips(bucket, `${STAGED_ZIPS}/${digest(job)}`);
    for await (const { key } of bucket.list(`${staged.folder}/`)) if (NAME.test(key)) staged.#keys.add(key);
    return staged;
  }

  /** The record of a zip that is there for this version of the object; `absent` if the archive did not have it. The bytes of the zip are not compared yet. */
  async find(object: StagedObject): Promise<ZipRecord | 'absent' | undefined> {
    const key = this.#keyOf(object);
    const found = this.#keys.has(key) ? await this.bucket.head(key) : undefined;
    const record = recordIn(found?.note, object);
    return record === 'absent' || record?.bytes === found?.bytes ? record : undefined;
  }

  /** Writes a zip to a file. False: the bucket does not have it, or has other bytes. */
  async take(object: StagedObject, { bytes, sha256 }: ZipRecord, path: string): Promise<boolean> {
    const found = await this.bucket.get(this.#keyOf(object), path, { compares: true });
    if (found?.bytes !== bytes) return false;
    return (await fileFacts(path)).sha256 === sha256;
  }

  /** `path`: the file of the zip; an empty one for an absent object. */
  async put(
    { key, etag, bytes }: StagedObject,
    record: ZipRecord | { readonly absent: true },
    path: string,
  ): Promise<void> {
    const staged = this.#keyOf({ key });
    const note = JSON.stringify({ listed: { key, etag, bytes }, ...record });
    await this.bucket.put(staged, path, undefined, note);
    this.#keys.add(staged);
  }

  /** Removes the zips of these objects; by default, all zips of the job. */
  async remove(objects?: readonly string[]): Promise<void> {
    const keys = objects?.map((key) => this.#keyOf({ key })) ?? [...this.#keys].toSorted();
    for (const key of keys) {
      if (this.#keys.has(key)) await this.bucket.remove(key);
      this.#keys.delete(key);
    }
  }

  #keyOf({ key }: StagedObject): string {
    return `${this.folder}/${digest(key)}.zip`;
  }
}

/** Names of jobs and keys may have any characters. */
const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/** Undefined for a record of another version of the object, and for any other text. */
function recordIn(text: string | undefined, object: StagedObject): ZipRecord | 'absent' | undefined {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Document), text);
  if (!parsed.success) return undefined;
  const { listed, ...record } = parsed.output;
  if (listed.key !== object.key || listed.etag !== object.etag || listed.bytes !== object.bytes)
    return undefined;
  return 'absent' in record ? 'absent' : record;
}
