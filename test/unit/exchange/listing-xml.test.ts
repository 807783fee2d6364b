import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { parseListing } from '../../../src/exchange/s3-listing.js';
import { parser } from '../../helpers/served-folder.js';

interface Read {
  readonly ListBucketResult: {
    readonly IsTruncated: string;
    readonly NextMarker?: string;
    readonly NextContinuationToken?: string;
    readonly Contents?: readonly { Key: string; LastModified: string; ETag: string; Size: string }[];
    readonly CommonPrefixes?: readonly { Prefix: string }[];
  };
}

/** The page as an XML library reads it. */
function oracle(xml: string): ReturnType<typeof parseListing> {
  const { ListBucketResult: page } = parser.parse(xml) as Read;
  return {
    objects: (page.Contents ?? []).map((object) => ({
      key: object.Key,
      bytes: Number(object.Size),
      etag: object.ETag.replaceAll('"', ''),
      lastModified: object.LastModified,
    })),
    prefixes: (page.CommonPrefixes ?? []).map((common) => common.Prefix),
    truncated: page.IsTruncated === 'true',
    ...(page.NextMarker === undefined ? {} : { nextMarker: page.NextMarker }),
    ...(page.NextContinuationToken === undefined ? {} : { continuationToken: page.NextContinuationToken }),
  };
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character] ?? character);
}

const name = fc
  .array(
    fc.constantFrom('data/', 'BTC', '币安人生', '-1m-', '2024-01-15', '&', '<', '>', '"', "'", '+', '%2F'),
    {
      minLength: 1,
      maxLength: 6,
    },
  )
  .map((parts) => parts.join(''));

const object = fc.record({
  key: name,
  bytes: fc.nat(),
  etag: fc.stringMatching(/^[0-9a-f]{8}(-[0-9])?$/),
  lastModified: fc.constant('2026-09-02T07:40:48.000Z'),
  extra: fc.constantFrom('', '<StorageClass>STANDARD</StorageClass>', '<Owner><ID>Key</ID></Owner>'),
});

const page = fc
  .record({
    objects: fc.array(object, { maxLength: 4 }),
    prefixes: fc.array(name, { maxLength: 3 }),
    truncated: fc.boolean(),
    nextMarker: fc.option(name, { nil: undefined }),
    token: fc.option(name, { nil: undefined }),
    space: fc.constantFrom('', '\n', '\n  '),
    unknown: fc.constantFrom('', '<KeyCount>7</KeyCount>', '<Checksum a="1"/>', '<Deep><Er>x</Er></Deep>'),
  })
  .map(({ objects, prefixes, truncated, nextMarker, token, space, unknown }) => {
    const parts = [
      '<?xml version="1.0" encoding="UTF-8"?>',
      '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
      '<Name>data.binance.vision</Name><Prefix>data/</Prefix><Marker></Marker>',
      ...(nextMarker === undefined ? [] : [`<NextMarker>${escaped(nextMarker)}</NextMarker>`]),
      ...(token === undefined ? [] : [`<NextContinuationToken>${escaped(token)}</NextContinuationToken>`]),
      `<MaxKeys>1000</MaxKeys>${unknown}<IsTruncated>${truncated}</IsTruncated>`,
      ...objects.map(
        ({ key, bytes, etag, lastModified, extra }) =>
          `<Contents><Key>${escaped(key)}</Key><LastModified>${lastModified}</LastModified>` +
          `<ETag>&quot;${etag}&quot;</ETag><Size>${bytes}</Size>${extra}</Contents>`,
      ),
      ...prefixes.map((text) => `<CommonPrefixes><Prefix>${escaped(text)}</Prefix></CommonPrefixes>`),
      '</ListBucketResult>',
    ];
    return parts.join(space) + space;
  });

function parsed(xml: string): ReturnType<typeof parseListing> {
  return parseListing(Buffer.from(xml));
}

function codeOf(xml: string | Buffer): string {
  try {
    parseListing(Buffer.from(xml));
    return 'accepted';
  } catch (error) {
    return error instanceof CryptodlError ? error.code : String(error);
  }
}

it('a listing is read as an XML library reads it', () => {
  fc.assert(
    fc.property(page, (xml) => {
      expect(parsed(xml)).toEqual(oracle(xml));
    }),
    { numRuns: 500 },
  );
});

it('a listing that ends early is refused, wherever it ends', () => {
  fc.assert(
    fc.property(page, fc.double({ min: 0, max: 0.999, noNaN: true }), (xml, share) => {
      const whole = xml.trimEnd();
      expect(codeOf(whole.slice(0, Math.floor(share * whole.length)))).toBe('listing-malformed');
    }),
    { numRuns: 500 },
  );
});

const wrap = (inner: string): string => whole(`<IsTruncated>false</IsTruncated>${inner}`);
const whole = (inner: string): string => `<ListBucketResult>${inner}</ListBucketResult>`;
const ONE = '<Contents><Key>a</Key><Size>1</Size></Contents>';

describe('a document that is no listing is refused', () => {
  it.each([
    ['nothing', ''],
    ['a web page', '<!DOCTYPE html><html><body>Binance Data Collection</body></html>'],
    ['an error document', '<Error><Code>AccessDenied</Code></Error>'],
    ['an object without a key', wrap('<Contents><Size>1</Size></Contents>')],
    ['an object with an empty key', wrap('<Contents><Key></Key><Size>1</Size></Contents>')],
    ['an object without a size', wrap('<Contents><Key>a</Key></Contents>')],
    ['an object of a negative size', wrap('<Contents><Key>a</Key><Size>-1</Size></Contents>')],
    ['an object that is not closed', wrap('<Contents><Key>a</Key><Size>1</Size>')],
    [
      'a key in url encoding that is none',
      wrap('<EncodingType>url</EncodingType><Contents><Key>%E5</Key><Size>1</Size></Contents>'),
    ],
    ['an object whose size no number holds', wrap(ONE.replace('1', '9007199254740993'))],
    ['an ETag of 300 characters', wrap(ONE.replace('<Size>', `<ETag>${'x'.repeat(300)}</ETag><Size>`))],
    [
      'a control character in its time',
      wrap(ONE.replace('<Size>', '<LastModified>\u0085</LastModified><Size>')),
    ],
    ['a folder without a name', wrap('<CommonPrefixes></CommonPrefixes>')],
    ['a page that does not say whether it continues', whole(ONE)],
    ['a page that says it another way', whole(`<IsTruncated>tsue</IsTruncated>${ONE}`)],
  ])('%s', (_, xml) => {
    expect(codeOf(xml)).toBe('listing-malformed');
  });

  // Each of these is one damage to a page, and used to cost it an object or the pages behind it.
  it.each<[string, string | Buffer]>([
    ['its opening tag', wrap(ONE.replace('<Contents>', '<Contentr>'))],
    ['its closing tag', wrap(ONE.replace('</Contents>', '</Contentr>'))],
    ['a bracket', wrap(ONE.replace('<Contents>', '|Contents>'))],
    ['the border of two', wrap((ONE + ONE).replace('</Contents><Contents>', ''))],
    ['two keys', wrap(ONE.replace('<Size>', '<Key>b</Key><Size>'))],
    ['a tag in its key', wrap(ONE.replace('<Key>a', '<Key><b/>a'))],
    ['an entity', wrap(ONE.replace('<Key>a', '<Key>&anp;a'))],
    ['an entity that JavaScript knows', wrap(ONE.replace('<Key>a', '<Key>&toString;a'))],
    ['an ampersand', wrap(ONE.replace('<Key>a', '<Key>& a'))],
    ['a character that is none', wrap(ONE.replace('<Key>a', '<Key>&#0;a'))],
    ['a control character', wrap(ONE.replace('<Key>a', '<Key>\u0001a'))],
    ['bytes that are no UTF-8', Buffer.from(wrap(ONE.replace('<Key>a', '<Key>\u00e9')), 'latin1')],
    ['the declaration', `<?xml version="1.0" encoding="UTF-8">${wrap(ONE)}`],
    ['an attribute', wrap(ONE).replace('>', ' xmlns="a>')],
    ['what follows', `${wrap(ONE)}<p/>`],
    ['a space behind it that is none in XML', `${wrap(ONE)}\f`],
    ['a part taken out of sight', wrap(`<!--${ONE}-->`)],
    ['a part taken for text', wrap(`<![CDATA[${ONE}]]>`)],
  ])('and so is an object with damage to %s', (_, xml) => {
    expect(codeOf(wrap(ONE))).toBe('accepted');
    expect(codeOf(xml)).toBe('listing-malformed');
  });

  it('and shows how it starts', () => {
    expect(() => parsed('<html>\n  <body>')).toThrow('not a ListBucketResult: "<html> <body>"');
  });
});

it('keys, prefixes and markers in url encoding are decoded', () => {
  const text = encodeURIComponent('data/币安人生USDT/a b');
  const xml = wrap(
    `<EncodingType>url</EncodingType><NextMarker>${text}</NextMarker>` +
      `<Contents><Key>${text.replaceAll('%20', '+')}</Key><Size>1</Size></Contents>` +
      `<CommonPrefixes><Prefix>${text}%2F</Prefix></CommonPrefixes>`,
  );
  const listing = parsed(xml);
  expect(listing.objects[0]?.key).toBe('data/币安人生USDT/a b');
  expect(listing.prefixes).toEqual(['data/币安人生USDT/a b/']);
  expect(listing.nextMarker).toBe('data/币安人生USDT/a b');
});

it('numeric entities are characters', () => {
  const xml = wrap('<Contents><Key>&#24065;&#x5B89;&#x1F600;</Key><Size>1</Size></Contents>');
  expect(parsed(xml).objects[0]?.key).toBe('币安😀');
});

it('a document of another hand is read all the same: other quotes, an attribute more, spaces, a byte order mark', () => {
  const xml = `\uFEFF<?xml version='1.0' encoding='utf-8' ?>\r\n${wrap(ONE)
    .replace('<ListBucketResult>', '<ListBucketResult xmlns=\'a\' b="c>d" >')
    .replaceAll('><', '>\r\n  <')}\n`;
  expect(parsed(xml)).toEqual(parsed(wrap(ONE)));
});

it('the prefix of the request is no folder', () => {
  expect(parsed(wrap('<Prefix>data/</Prefix>'))).toEqual({
    objects: [],
    prefixes: [],
    truncated: false,
  });
});
