import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { createListing, type GetListing } from '../../../src/exchange/listing.js';
import type { ListingCopies } from '../../../src/exchange/listing.js';
import type { ListingCopy } from '../../../src/exchange/listing-copy.js';
import type { ListingPage } from '../../../src/exchange/exchange.js';
import { S3_LISTING, parseListing } from '../../../src/exchange/s3-listing.js';

/** As the session does it: every page is parsed as it comes. */
const parsed =
  (get: (query: string) => Promise<string>): GetListing =>
  async (query) =>
    parseListing(Buffer.from(await get(query)));

interface Answer {
  readonly keys?: readonly string[];
  readonly prefixes?: readonly string[];
  readonly next?: string;
  readonly token?: string;
  readonly truncated?: boolean;
}

function documentOf(answer: Answer): string {
  return [
    '<ListBucketResult>',
    `<IsTruncated>${answer.truncated ?? false}</IsTruncated>`,
    answer.next === undefined ? '' : `<NextMarker>${answer.next}</NextMarker>`,
    answer.token === undefined ? '' : `<NextContinuationToken>${answer.token}</NextContinuationToken>`,
    ...(answer.keys ?? []).map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`),
    ...(answer.prefixes ?? []).map((text) => `<CommonPrefixes><Prefix>${text}</Prefix></CommonPrefixes>`),
    '</ListBucketResult>',
  ].join('');
}

/** Answers in turn, the last one for ever, and notes what was asked. */
function answering(...answers: Answer[]): { get: (query: string) => Promise<string>; asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    get: (query) => {
      asked.push(query);
      return Promise.resolve(documentOf(answers[Math.min(asked.length, answers.length) - 1] ?? {}));
    },
  };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

function parameter(query: string | undefined, name: string): string | null {
  return new URLSearchParams(query?.slice('/?'.length)).get(name);
}

async function keysOf(
  archive: ReturnType<typeof answering>,
  marker?: string,
  pageSize?: number,
): Promise<string[]> {
  const listed = await all(createListing(parsed(archive.get), S3_LISTING).objects('d/', marker, pageSize));
  return listed.flat().map((object) => object.key);
}

describe('the next page', () => {
  it('follows NextMarker', async () => {
    const archive = answering({ keys: ['d/a'], truncated: true, next: 'd/m' }, { keys: ['d/z'] });
    expect(await keysOf(archive)).toEqual(['d/a', 'd/z']);
    expect(archive.asked.map((query) => parameter(query, 'marker'))).toEqual([null, 'd/m']);
    expect(archive.asked.map((query) => parameter(query, 'prefix'))).toEqual(['d/', 'd/']);
  });

  it('follows the last key where there is no NextMarker', async () => {
    const archive = answering({ keys: ['d/a', 'd/b'], truncated: true }, { keys: ['d/c'] });
    expect(await keysOf(archive)).toEqual(['d/a', 'd/b', 'd/c']);
    expect(parameter(archive.asked[1], 'marker')).toBe('d/b');
  });

  it('follows the last folder where a page has only folders', async () => {
    const archive = answering({ prefixes: ['d/A/', 'd/B/'], truncated: true }, { prefixes: ['d/币/'] });
    expect(await all(createListing(parsed(archive.get), S3_LISTING).folders('d/'))).toEqual(['A', 'B', '币']);
    expect(parameter(archive.asked[1], 'marker')).toBe('d/B/');
  });

  it('takes the later of key and folder, by bytes', async () => {
    // UTF-16 order would put the emoji first.
    const archive = answering({ keys: ['d/\uFF5E'], prefixes: ['d/😀/'], truncated: true }, {});
    await keysOf(archive);
    expect(parameter(archive.asked[1], 'marker')).toBe('d/😀/');
  });

  it('follows a continuation token where the store pages by tokens', async () => {
    const archive = answering(
      { keys: ['d/a'], truncated: true, token: 'zz/1+=' },
      { keys: ['d/b'], truncated: true, token: 'aa' },
      { keys: ['d/c'] },
    );
    expect(await keysOf(archive)).toEqual(['d/a', 'd/b', 'd/c']);
    expect(archive.asked.map((query) => parameter(query, 'continuation-token'))).toEqual([
      null,
      'zz/1+=',
      'aa',
    ]);
    expect(parameter(archive.asked[1], 'list-type')).toBe('2');
    expect(parameter(archive.asked[1], 'marker')).toBeNull();
  });

  it('is not asked for when the page was the last', async () => {
    const archive = answering({ keys: ['d/a'], next: 'd/a' });
    expect(await keysOf(archive)).toEqual(['d/a']);
    expect(archive.asked).toHaveLength(1);
  });

  it('is not requested without need', async () => {
    const archive = answering({ keys: ['d/a', 'd/b'], truncated: true });
    for await (const page of createListing(parsed(archive.get), S3_LISTING).objects('d/'))
      if (page.some((object) => object.key === 'd/b')) break;
    expect(archive.asked).toHaveLength(1);
  });
});

describe('a listing that would never end is refused', () => {
  it.each<[string, Answer]>([
    ['the same marker again', { keys: ['d/a'], truncated: true, next: 'd/a' }],
    ['the same last key again', { keys: ['d/a'], truncated: true }],
    ['truncated and empty', { truncated: true }],
    ['the same token again', { keys: ['d/a'], truncated: true, token: 'again' }],
    ['the same token again, and nothing listed', { truncated: true, token: 'again' }],
  ])('%s', async (_, answer) => {
    const archive = answering(answer);
    const counted = async (query: string): Promise<string> => {
      if (archive.asked.length > 20) throw new Error('asked for ever');
      return archive.get(query);
    };
    await expect(all(createListing(parsed(counted), S3_LISTING).objects('d/'))).rejects.toMatchObject({
      code: 'listing-malformed',
    });
  });

  it('tokens that go round', async () => {
    const archive = answering(
      { keys: ['d/a', 'd/b'], truncated: true, token: '1' },
      { keys: ['d/c'], truncated: true, token: '2' },
      { keys: ['d/a', 'd/b'], truncated: true, token: '1' },
      {},
    );
    await expect(keysOf(archive)).rejects.toMatchObject({ code: 'listing-malformed' });
  });

  it.each([
    ['with names', 1000, 200],
    ['with a name on each page', 1, 5000],
  ])('new pages for ever, %s', async (_, namesOnPage, mostPages) => {
    let pages = 0;
    const get = (): Promise<ListingPage> => {
      const first = pages * namesOnPage;
      pages += 1;
      if (pages > 6000) throw new Error('asked for ever');
      const objects = Array.from({ length: namesOnPage }, (__, index) => ({
        key: `d/${String(first + index).padStart(9, '0')}`,
        bytes: 1,
        etag: 'e',
        lastModified: '',
      }));
      return Promise.resolve({ objects, prefixes: [], truncated: true });
    };
    await expect(all(createListing(get, S3_LISTING).objects('d/'))).rejects.toThrow(
      'the listing of d/ does not end',
    );
    expect(pages).toBe(mostPages + 1);
  });

  it('a marker that goes back', async () => {
    const archive = answering({ keys: ['d/a'], truncated: true, next: 'd/a' });
    await expect(keysOf(archive, 'd/m')).rejects.toThrow('does not advance past d/m');
  });
});

it('prefix, marker and page size are asked for as given, encoded', async () => {
  const archive = answering({});
  await all(createListing(parsed(archive.get), S3_LISTING).objects('data/币安人生USDT/', 'data/币&1', 20));
  const [query = ''] = archive.asked;
  expect(query).toMatch(/^[\x21-\x7e]+$/);
  expect(parameter(query, 'prefix')).toBe('data/币安人生USDT/');
  expect(parameter(query, 'marker')).toBe('data/币&1');
  expect(parameter(query, 'max-keys')).toBe('20');
  expect(parameter(query, 'delimiter')).toBe('/');
});

it('a name without a slash behind it is no folder', async () => {
  const archive = answering({ prefixes: ['d/A/', 'd/B'] });
  expect(await all(createListing(parsed(archive.get), S3_LISTING).folders('d/'))).toEqual(['A']);
});

// A name that was damaged on its way would take its object or symbol with it.
describe('a page whose names are not in byte order, each once and below the prefix, is refused', () => {
  it.each<[string, Answer]>([
    ['keys out of order', { keys: ['d/2.zip', 'd/1.zip'] }],
    ['a key twice', { keys: ['d/1.zip', 'd/1.zip'] }],
    ['a key elsewhere', { keys: ['c/1.zip', 'd/2.zip'] }],
    ['folders out of order', { prefixes: ['d/B/', 'd/A/'] }],
    ['a folder elsewhere', { prefixes: ['d/A/', 'other/X/'] }],
  ])('%s', async (_, page) => {
    const listing = createListing(parsed(answering(page).get), S3_LISTING);
    const walk = page.keys === undefined ? all(listing.folders('d/')) : all(listing.objects('d/'));
    await expect(walk).rejects.toMatchObject({ code: 'listing-malformed' });
  });

  it('while the order is that of UTF-8', async () => {
    const keys = ['d/\uFF21.zip', 'd/😀.zip'];
    expect(await keysOf(answering({ keys }))).toEqual(keys);
  });
});

it('a listing that cannot be had is left alone for a minute, and then asked again', async () => {
  let now = 0;
  let asked = 0;
  const listing = createListing(
    () => {
      asked += 1;
      return Promise.reject(new CryptodlError('connect-failed', 'no server listens'));
    },
    S3_LISTING,
    { monotonic: () => now },
  );
  const walk = (): Promise<IteratorResult<string>> => listing.folders('data/').next();
  await expect(walk()).rejects.toThrow('no server listens');
  await expect(walk()).rejects.toThrow('no server listens');
  expect(asked).toBe(1);
  now = 60_000;
  await expect(walk()).rejects.toThrow('no server listens');
  expect(asked).toBe(2);
});

describe('the copy of a listing', () => {
  const MINUTE_MS = 60_000;
  const NOW = Date.parse('2026-11-21T12:00:00Z');

  /** A listing of pages with one object each. Each walk resolves with the number of writes so far. */
  function listed(etags: string[]) {
    let copy: ListingCopy | undefined;
    let writes = 0;
    const get: GetListing = (address) => {
      const marker = new URLSearchParams(address.slice('/?'.length)).get('marker') ?? 'd/-1';
      const at = Number(marker.slice('d/'.length)) + 1;
      const objects = [{ key: `d/${at}`, bytes: 1, etag: etags[at] ?? '', lastModified: '' }];
      return Promise.resolve({ objects, prefixes: [], truncated: at + 1 < etags.length });
    };
    return async (nowMs: number): Promise<number> => {
      const copies: ListingCopies = {
        nowMs,
        read: () => Promise.resolve(copy),
        keep: (_, value) => {
          copy = value;
          writes += 1;
          return Promise.resolve();
        },
        mayReplace: () => false,
      };
      const objects = (await all(createListing(get, S3_LISTING, { copies }).objects('d/'))).flat();
      expect(objects.map(({ etag }) => etag)).toEqual(etags);
      return writes;
    };
  }

  it('is written again when it is an hour old', async () => {
    const walk = listed(['a', 'b']);
    expect(await walk(NOW)).toBe(1);
    expect(await walk(NOW + 59 * MINUTE_MS)).toBe(1);
    expect(await walk(NOW + 60 * MINUTE_MS)).toBe(2);
    expect(await walk(NOW + 119 * MINUTE_MS)).toBe(2);
    expect(await walk(NOW + 120 * MINUTE_MS)).toBe(3);
  });

  it('is written again if it is from a time when the clock was wrong', async () => {
    const walk = listed(['a', 'b']);
    expect(await walk(NOW + 60 * MINUTE_MS)).toBe(1);
    expect(await walk(NOW + MINUTE_MS)).toBe(1);
    expect(await walk(NOW)).toBe(2);
  });
});
