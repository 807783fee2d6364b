/** What the product makes of damaged zips and sidecars. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Body, Fetch } from '../../src/model/fetch.js';
import { downloadObject } from '../../src/run/objects/download-object.js';
import type { PartitionPlan } from '../../src/model/task.js';
import { verifyLayer } from '../../src/http/transport/verify-body.js';
import { unzip } from '../../src/exchange/zip/unzip.js';
import type { ReceivedObject } from '../../src/convert/csv-input.js';
import { systemClock } from '../../src/model/clock.js';
import { LiveRun } from '../../src/run/report/live-run.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { period, SETTINGS } from '../helpers/conversion.js';
import { answer } from '../helpers/requests.js';
import { CSV_NAME, digest, FOLDER, sidecarOf, ZIP_NAME, ZIPS } from './bodies.js';
import type { SoundZip } from './bodies.js';
import { mutate } from './mutations.js';
import type { Random } from './mutations.js';
import { readSidecar } from './readers.js';
import { refusedAs } from './torture.js';

const ZIP_REFUSALS = ['zip-broken', 'zip-unsupported', 'zip-bomb'];
const WIRE_REFUSALS = ['not-a-zip', 'length-mismatch', 'body-damaged', 'checksum-mismatch', 'zip-truncated'];
const REFUSALS = [...ZIP_REFUSALS, ...WIRE_REFUSALS];
export const ZIP_BYTES = ZIPS.map(({ bytes }) => bytes);

const VENUE = loadBinance();
const PLAN: PartitionPlan = {
  series: { market: 'spot', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' },
  settings: SETTINGS,
  label: '2024-01',
  tasks: [],
};

interface Published {
  readonly zip: Buffer;
  readonly sidecar?: Buffer;
  /** Of the listing. */
  readonly etag?: string;
  readonly bytes?: number;
}

/** What a run makes of an archive that holds just this: everything above the wire is the product's. */
async function download(folder: string, published: Published): Promise<ReceivedObject | undefined> {
  const { zip, sidecar, etag, bytes } = published;
  const wire: Fetch = ({ url }) => {
    const body = url.endsWith('.CHECKSUM') ? sidecar : zip;
    return Promise.resolve(body === undefined ? answer('', 404) : answer(body));
  };
  const object = {
    key: FOLDER + ZIP_NAME,
    period: period('2024-01-15'),
    ...(etag === undefined ? {} : { etag }),
    ...(bytes === undefined ? {} : { bytes }),
  };
  const context = {
    fetch: verifyLayer(wire),
    exchange: VENUE,
    options: {
      archiveUrl: 'http://archive.test',
      staleChecksum: 'fail' as const,
      verify: etag === undefined ? ('sha256' as const) : ('etag' as const),
      priority: 'normal' as const,
    },
    runFolder: folder,
    stop: new AbortController(),
    live: new LiveRun(systemClock),
    zips: undefined,
  };
  const arrived = await downloadObject(context, PLAN, object);
  return 'received' in arrived ? arrived.received : undefined;
}

function damaged(random: Random): { sound: SoundZip; zip: Buffer; how: string } {
  const sound = random.pick(ZIPS);
  const { bytes, how } = mutate(random, sound.bytes, ZIP_BYTES);
  return { sound, zip: bytes, how: `${sound.name}, ${how}` };
}

export async function besideItsDigest(
  folder: string,
  random: Random,
  known: 'sidecar' | 'ETag',
): Promise<string> {
  const { sound, zip } = damaged(random);
  const published =
    known === 'ETag' ? { etag: digest('md5', sound.bytes) } : { sidecar: sidecarOf(sound.bytes) };
  const got = download(folder, { zip, ...published });
  return got.then(
    () => 'accepted',
    (error: unknown) => refusedAs(error, WIRE_REFUSALS),
  );
}

export async function withoutDigest(folder: string, random: Random): Promise<string> {
  const { sound, zip, how } = damaged(random);
  const listed = random.below(2) === 0 ? {} : { bytes: sound.bytes.length };
  const got = await download(folder, { zip, ...listed }).catch((error: unknown) =>
    refusedAs(error, REFUSALS),
  );
  if (typeof got === 'string') return got;
  assert.equal(got?.verified, 'crc');
  return ownContent(how, got?.csv);
}

/** Members above `memoryBytes` go through a file. */
export async function unpacked(
  folder: string,
  zip: Buffer,
  how: string,
  memoryBytes: number,
): Promise<string> {
  const options = { spoolPath: join(folder, 'member.csv'), memoryBytes, maxBytes: 1 << 24 };
  const got = await unzip({ kind: 'memory', bytes: zip }, CSV_NAME, options).catch((error: unknown) =>
    refusedAs(error, ZIP_REFUSALS),
  );
  return typeof got === 'string' ? got : ownContent(how, got);
}

export async function anyWayUnpacked(folder: string, random: Random): Promise<string> {
  const { zip, how } = damaged(random);
  return unpacked(folder, zip, how, random.pick([0, 1 << 20, 1 << 20, 1 << 20]));
}

/** Splices may end in the content of another of the sound zips. */
function ownContent(how: string, body: Body | undefined): string {
  const content = body?.kind === 'file' ? readFileSync(body.path) : body?.bytes;
  const isOwn = ZIPS.some((zip) => content?.equals(zip.content) === true);
  assert.ok(isOwn, `${how}: the content is another one: ${content?.toString('utf8').slice(0, 400)}`);
  return 'harmless';
}

export async function besideDamagedSidecar(folder: string, random: Random): Promise<string> {
  const { bytes: zip } = random.pick(ZIPS);
  const { bytes: sidecar } = mutate(
    random,
    sidecarOf(zip),
    ZIP_BYTES.map((other) => sidecarOf(other)),
  );
  const said = readSidecar(sidecar, ZIP_NAME);
  const isRight = said === digest('sha256', zip);
  const got = await download(folder, { zip, sidecar }).catch((error: unknown) =>
    refusedAs(error, WIRE_REFUSALS),
  );
  const shown = sidecar.toString('utf8');
  if (typeof got === 'string') {
    assert.ok(said !== undefined && !isRight, `refused, but says ${said}: ${shown}`);
    return got;
  }
  assert.equal(got?.verified, isRight ? 'sidecar' : 'crc', shown);
  assert.equal(said === undefined, !isRight, shown);
  return isRight ? 'still the digest' : 'taken for none';
}

export async function bothDamaged(folder: string, random: Random): Promise<string> {
  const { sound, zip, how } = damaged(random);
  const { bytes: sidecar } = mutate(random, sidecarOf(sound.bytes), [sidecarOf(zip)]);
  const got = await download(folder, { zip, sidecar }).catch((error: unknown) => refusedAs(error, REFUSALS));
  if (typeof got === 'string') return got;
  // A splice may end in the sidecar of just this zip; nothing else vouches for it.
  if (got?.verified === 'sidecar') assert.equal(readSidecar(sidecar, ZIP_NAME), digest('sha256', zip));
  return ownContent(how, got?.csv);
}
