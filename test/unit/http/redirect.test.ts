import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Fetch, FetchContext, FetchRequest } from '../../../src/model/fetch.js';
import { redirectLayer } from '../../../src/http/transport/redirect.js';
import { answer, context, refusal, REQUEST } from '../../helpers/requests.js';

const HTTPS = 'https://archive.test/data/a.zip';
const MOVED = { message: 'host answered 302' };

/** A host that points to each of these in turn, and then answers; a run that knows `origin.test` besides. */
function pointing(...locations: (string | undefined)[]) {
  const asked: { request: FetchRequest; how: FetchContext }[] = [];
  const host: Fetch = (request, how) => {
    asked.push({ request, how });
    const location = locations[asked.length - 1];
    return location === undefined
      ? Promise.resolve(answer('x'))
      : Promise.reject(new CryptodlError('redirect-refused', MOVED.message, { location }));
  };
  const layer = redirectLayer(new Set(['origin.test', 'local.test:8080']))(host);
  const fetch = (url: string, more: Partial<FetchRequest> = {}) =>
    layer({ ...REQUEST, ...more, url }, context());
  return { asked, fetch, urls: () => asked.map(({ request }) => request.url) };
}

describe('redirects', () => {
  it.each<[string, string, string]>([
    ['a place beside it', 'b.zip', 'https://archive.test/data/b.zip'],
    ['a known host without its scheme', '//origin.test/a.zip', 'https://origin.test/a.zip'],
    ['a known port', 'https://local.test:8080/a.zip', 'https://local.test:8080/a.zip'],
  ])('are followed to %s', async (_, location, there) => {
    const { fetch, urls } = pointing(location);
    expect((await fetch(HTTPS)).status).toBe(200);
    expect(urls()).toEqual([HTTPS, there]);
  });

  it('are followed from http to https, and within http', async () => {
    const { fetch, urls } = pointing('https://archive.test/data/a.zip');
    await fetch(REQUEST.url);
    expect(urls()).toEqual([REQUEST.url, 'https://archive.test/data/a.zip']);
    const within = pointing('http://origin.test/a.zip');
    await within.fetch(REQUEST.url);
    expect(within.urls()).toEqual([REQUEST.url, 'http://origin.test/a.zip']);
  });

  it.each<[string, string, string]>([
    ['a host that nobody named', 'https://evil.test/a.zip', 'a host that this run does not know'],
    ['a host that only ends like ours', 'https://xarchive.test/a.zip', 'a host that this run does not know'],
    ['another port of ours', 'https://archive.test:8443/a.zip', 'a host that this run does not know'],
    ['our name as a user', 'https://archive.test@evil.test/', 'a host that this run does not know'],
    ['http', 'http://archive.test/data/a.zip', 'which is less secure'],
    ['a file', 'file:///etc/passwd', 'a host that this run does not know'],
    ['no address', 'http://[', 'which is not an address'],
  ])('are refused from https to %s, and nothing is asked there', async (_, location, why) => {
    const { fetch, urls } = pointing(location);
    const error = await refusal(fetch(HTTPS));
    expect(error).toMatchObject({ code: 'redirect-refused', retryable: false, cause: MOVED });
    expect(error.message).toBe(`archive.test redirects to ${location}, ${why}`);
    expect(urls()).toEqual([HTTPS]);
  });

  it('are refused from http to ftp', async () => {
    const { fetch, urls } = pointing('ftp://archive.test/a.zip');
    expect((await refusal(fetch(REQUEST.url))).message).toContain('less secure');
    expect(urls()).toEqual([REQUEST.url]);
  });

  it('are judged from where the last one pointed: http is not reached by way of https', async () => {
    const { fetch, urls } = pointing('https://origin.test/a.zip', 'http://origin.test/a.zip');
    expect((await refusal(fetch(REQUEST.url))).message).toContain('less secure');
    expect(urls()).toEqual([REQUEST.url, 'https://origin.test/a.zip']);
  });

  it('are followed three times and no further', async () => {
    const three = pointing('/1', '/2', '/3');
    await three.fetch(HTTPS);
    expect(three.asked).toHaveLength(4);
    const loop = pointing('/1', '/2', '/3', '/4', '/5');
    const error = await refusal(loop.fetch(HTTPS));
    expect(error).toMatchObject({ message: 'archive.test redirects more than 3 times', cause: MOVED });
    expect(loop.asked).toHaveLength(4);
  });

  it('keep everything else of the request and of its attempt', async () => {
    const { fetch, asked } = pointing('/b.zip');
    const more = { bypassCache: true, partial: { bytes: 5, etag: '"e"' }, spoolPath: '/x', maxBytes: 9 };
    await fetch(HTTPS, more);
    expect(asked[1]?.request).toMatchObject(more);
    expect(asked[1]?.how).toBe(asked[0]?.how);
  });

  it.each([new Error('bug'), new CryptodlError('http-server-error', 'host answered 503')])(
    'leave other failures alone: %s',
    async (error) => {
      const host: Fetch = () => Promise.reject(error);
      await expect(redirectLayer(new Set())(host)(REQUEST, context())).rejects.toBe(error);
    },
  );

  it('lead from https only to https on a known host, with any header', async () => {
    const part = fc.constantFrom(
      'http:',
      'https:',
      'ftp:',
      '//',
      '/',
      '@',
      ':',
      '8443',
      '\\',
      '?',
      '#',
      '..',
    );
    const host = fc.constantFrom('archive.test', 'origin.test', 'evil.test', 'user:pass@archive.test', '%2f');
    const locations = fc.array(fc.oneof(part, host, fc.webUrl(), fc.string({ maxLength: 5 })), {
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(locations, { minLength: 1, maxLength: 4 }), async (all) => {
        const { fetch, urls } = pointing(...all.map((parts) => parts.join('')));
        await fetch(HTTPS).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'redirect-refused' });
        });
        for (const url of urls()) {
          expect(new URL(url).protocol).toBe('https:');
          expect(['archive.test', 'origin.test', 'local.test:8080']).toContain(new URL(url).host);
        }
      }),
      { numRuns: 300 },
    );
  });
});
