/** Commands of a queue as processes, over a real redis-server. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { cryptodlProcess, FAST } from './cli.js';
import type { CliResult } from './cli.js';
import { filesBelow } from './lake.js';
import { lakeInBucket } from './lake-kinds.js';
import type { TestLake } from './lake-kinds.js';
import { startRedis } from './redis-server.js';
import type { RedisProcess } from './redis-server.js';
import type { Scene } from './scene.js';
import { S3Server } from './s3-server.js';
import type { S3ServerOptions } from './s3-server.js';

export interface StartedWorker {
  readonly process: ChildProcess;
  readonly ended: Promise<CliResult>;
}

/** Commands over one redis-server and a lake anywhere. */
export class QueueCommands {
  readonly redis: RedisProcess;
  readonly lake: Pick<TestLake, 'out' | 'environment'>;
  readonly #scene: Scene;

  constructor(scene: Scene, redis: RedisProcess, lake: Pick<TestLake, 'out' | 'environment'>) {
    this.#scene = scene;
    this.redis = redis;
    this.lake = lake;
  }

  /** `url`: the archive of this process. */
  flags(url = this.#scene.archive.url): string[] {
    const quiet = FAST.filter((word) => !['--progress', 'none'].includes(word));
    const archive = ['--archive-url', url, '--now', this.#scene.now, '--concurrency', '4'];
    return ['--redis', this.redis.address, '--out', this.lake.out, ...archive, ...quiet];
  }

  enqueue(words: readonly string[], verb = 'vision'): Promise<CliResult> {
    return cryptodlProcess(['enqueue', verb, ...this.flags(), ...words], { env: this.lake.environment });
  }

  /** `url`: the archive of this process. `wrap`: a command that starts it. */
  work(words: readonly string[], url?: string, wrap?: readonly string[]): StartedWorker {
    const found: ChildProcess[] = [];
    const ended = cryptodlProcess(['worker', ...this.flags(url), '--jobs', '2', ...words], {
      env: this.lake.environment,
      ...(wrap === undefined ? {} : { wrap }),
      onSpawn: (child) => found.push(child),
    });
    const [process] = found;
    if (process === undefined) throw new Error('no process');
    return { process, ended };
  }

  async status(): Promise<Readonly<Record<string, unknown>>> {
    const { events } = await cryptodlProcess(['status', '--redis', this.redis.address, '--json']);
    return events[0] ?? {};
  }

  async retry(): Promise<void> {
    await cryptodlProcess(['retry', '--redis', this.redis.address]);
  }

  /** Resolves when every job of the queue is done, or has failed. */
  async emptied(): Promise<void> {
    for (;;) {
      const { waiting, active, delayed } = await this.status();
      if (waiting === 0 && active === 0 && delayed === 0) return;
      await sleep(100);
    }
  }
}

/** The same with a lake in a bucket of this process. */
export class QueueRuns extends QueueCommands {
  override readonly lake: TestLake;
  readonly bucket: S3Server;

  private constructor(scene: Scene, redis: RedisProcess, bucket: S3Server) {
    const lake = lakeInBucket(bucket, 'lake', scene.scratch);
    super(scene, redis, lake);
    this.lake = lake;
    this.bucket = bucket;
  }

  /** `redis`: arguments of redis-server. */
  static async open(
    scene: Scene,
    { redis = [], s3 = {} }: { readonly redis?: readonly string[]; readonly s3?: S3ServerOptions } = {},
  ): Promise<QueueRuns> {
    const bucket = await new S3Server({ pageSize: 3, ...s3 }).listen();
    return new QueueRuns(scene, await startRedis(redis), bucket);
  }

  async close(): Promise<void> {
    await this.redis.close();
    await this.bucket.close();
  }

  /** Keys of the zips between two workers. */
  staged(): string[] {
    return [...this.bucket.objects.keys()].filter((key) => key.startsWith('lake/.cryptodl/zips/'));
  }
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

/** The files of a lake. Of a manifest: its lines without their times, in any order. */
export function contentOf(folder: string): Record<string, string> {
  const files = filesBelow(folder).filter((path) => !path.startsWith('.cryptodl/'));
  return Object.fromEntries(
    files.map((path) => {
      const bytes = readFileSync(join(folder, path));
      if (!path.startsWith('_manifests/')) return [path, bytes.toString('base64')];
      const lines = bytes.toString().replaceAll(/"at":"[^"]*"/g, '"at":""');
      return [path, lines.split('\n').toSorted(byText).join('\n')];
    }),
  );
}

/** The same without the manifests: a file that was written twice has more lines. */
export function dataOf(folder: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(contentOf(folder)).filter(([path]) => path.startsWith('binance/')),
  );
}
