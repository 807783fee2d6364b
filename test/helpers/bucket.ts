/** A bucket of the program over a server, closed when the test is over. */
import { VERBS } from '../../src/main.js';
import { onTestFinished } from 'vitest';
import { RequestCounts } from '../../src/http/request-counts.js';
import { systemClock } from '../../src/model/clock.js';
import type { Clock } from '../../src/model/clock.js';
import { SILENT_OBSERVER } from '../../src/model/observer.js';
import type { Observer } from '../../src/model/observer.js';
import { surroundingsOf } from '../../src/files/environment.js';
import { proxiesOf } from '../../src/files/proxies.js';
import { bucketPlace } from '../../src/plan/options/addresses.js';
import { resolveOptions } from '../../src/plan/options/resolve.js';
import type { RawValues } from '../../src/plan/options/resolve.js';
import type { S3Credentials } from '../../src/model/lake-address.js';
import { LakeBucket } from '../../src/lake/s3/bucket.js';
import { S3Server } from './s3-server.js';
import type { S3ServerOptions } from './s3-server.js';

export interface BucketChoice {
  readonly address?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly flags?: RawValues;
  readonly clock?: Clock;
  readonly observer?: Partial<Observer>;
  readonly signal?: AbortSignal;
  readonly partBytes?: number;
  readonly credentials?: S3Credentials;
}

/** By default a failed request is sent again once, after a millisecond. */
export function bucketOf({ address = 's3://lake/data', environment, ...more }: BucketChoice): {
  readonly bucket: LakeBucket;
  readonly warnings: string[];
} {
  const warnings: string[] = [];
  const values: RawValues = {
    'retry-delay': ['1ms'],
    'retry-max-delay': ['1ms'],
    retries: ['1'],
    ...more.flags,
  };
  const { options } = resolveOptions(VERBS.vision, [
    { origin: 'flag', values, nameOf: (name) => `--${name}` },
  ]);
  const bucket = new LakeBucket({
    address,
    options: { ...options, ...bucketPlace(options, environment) },
    proxies: proxiesOf(undefined, surroundingsOf(environment)),
    environment,
    clock: more.clock ?? systemClock,
    observer: { ...SILENT_OBSERVER, warn: (message) => warnings.push(message), ...more.observer },
    partBytes: more.partBytes,
    credentials: more.credentials,
    counts: new RequestCounts(),
    signal: more.signal ?? new AbortController().signal,
  });
  onTestFinished(() => bucket.close());
  return { bucket, warnings };
}

/** A server that is gone when the test is over. */
export async function s3Server(options: S3ServerOptions = {}): Promise<S3Server> {
  const server = await new S3Server(options).listen();
  onTestFinished(() => server.close());
  return server;
}
