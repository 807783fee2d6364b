/** Connections through proxies, over real sockets: what a SOCKS5 proxy is asked, and its faults. */
import type { Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Fetch } from '../../../src/model/fetch.js';
import type { PoolOptions } from '../../../src/http/transport/pool.js';
import type { Connection } from '../../../src/http/transport/limited-clients.js';
import { startProxy } from '../../helpers/proxy.js';
import { answer, context, refusal } from '../../helpers/requests.js';
import { startSocks } from '../../helpers/socks.js';
import type { SocksOptions } from '../../helpers/socks.js';
import { resolving, wire, wirePools } from '../../helpers/wire.js';
import { httpAnswer, wireServer } from '../../helpers/wire-server.js';

const LOGIN = 'anna:pa55:w0rd%';
const WRITTEN_LOGIN = 'anna:pa55%3Aw0rd%25';
const EARLY = '\x05\0\x05\0\0\x01\0\0\0\0\0\0HTTP/1.1 200 OK\r\n\r\n';
const CUT = '\x05\0\x05\0\0\x03\x04he';

const through = (proxy: string, more: Partial<Omit<PoolOptions, 'clock'>> = {}): Fetch =>
  wire({ proxies: { http: proxy, https: proxy, except: '' }, connectTimeoutMs: 300, ...more });

/** A server that answers each request, under another host name. */
async function served(host = '127.0.0.1'): Promise<string> {
  const { url } = await wireServer((socket) => socket.write(httpAnswer(200, 'it')));
  return `${url.replace('127.0.0.1', host)}/a.zip`;
}

describe('a SOCKS5 proxy', () => {
  it.each([
    ['socks5', 'localhost', '1 7f000001'],
    ['socks5h', '[::1]', 'name ::1'],
  ])('of %s: asks it for %s as %s', async (scheme, host, asked) => {
    const socks = await startSocks();
    const fetch = through(`${scheme}://${socks.label}`);
    const request = { url: await served(host), bucket: 'archive' };
    const { sha256 } = await fetch(request, context());
    expect([sha256, socks.asked]).toEqual([answer('it').sha256, [asked]]);
  });

  it('has time for the answer of the host', async () => {
    const { url } = await wireServer((socket) => {
      setTimeout(() => socket.write(httpAnswer(200, 'it')), 200);
    });
    const fetch = through(`socks5h://${(await startSocks()).label}`, { connectTimeoutMs: 100 });
    expect((await fetch({ url, bucket: 'archive' }, context())).status).toBe(200);
  });

  const NO_ANSWER = /^the proxy .* cannot be reached: no answer to a SOCKS5 request$/;
  const reply = (code: number): SocksOptions => ({ replies: { 'archive.test': code } });
  const greeting = (text: string): SocksOptions => ({ greeting: Buffer.from(text, 'latin1') });
  it.each<[string, SocksOptions, string, RegExp, RegExp | undefined]>([
    ['wants a login', { login: LOGIN }, 'proxy-refused', /requires another login$/, /user:password/],
    ['wants another login', { login: 'x:y' }, 'proxy-refused', /refused user and password$/, /user:password/],
    ['is none', greeting('HTTP/1.1 400 Bad\r\n\r\n'), 'proxy-refused', /does not speak SOCKS5$/, /--proxy/],
    ['sends zeros', greeting(`\x05${'\0'.repeat(99)}`), 'proxy-refused', /not speak SOCKS5$/, /--proxy/],
    ['has another version', greeting('\x05\0\x04\0\0\x01'), 'proxy-refused', /not speak SOCKS5$/, /--proxy/],
    ['fills the reserved byte', greeting('\x05\0\x05\0\x07\x01'), 'proxy-refused', /SOCKS5$/, /--proxy/],
    ['answers early', greeting(EARLY), 'proxy-unreachable', /before the first request$/, /--proxy none/],
    ['hangs up', greeting('\x05'), 'proxy-unreachable', NO_ANSWER, /--proxy none/],
    ['is cut in the bound address', greeting(CUT), 'proxy-unreachable', NO_ANSWER, /--proxy none/],
    ['refuses the host', reply(2), 'proxy-refused', /connect to archive\.test: not allowed$/, undefined],
    ['does not reach it', reply(5), 'connect-failed', /archive\.test: connection refused$/, undefined],
    ['has a reply of its own', reply(77), 'connect-failed', /archive\.test: reply 77$/, undefined],
    ['does not answer', greeting(''), 'proxy-unreachable', NO_ANSWER, /--proxy none/],
  ])('that %s fails the request with its reason', async (what, options, code, message, hint) => {
    const socks = await startSocks(options);
    const login = what === 'wants another login' ? `${WRITTEN_LOGIN}@` : '';
    const fetch = through(`socks5h://${login}${socks.label}`);
    const error = await refusal(fetch({ url: await served('archive.test'), bucket: 'archive' }, context()));
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(error.message.replace(/^the proxy (?:127\S+ )?/, '')).toBe(error.proxyFault);
    if (hint !== undefined) expect(error.hint).toMatch(hint);
    expect(error.message).not.toContain('pa55');
  });

  it('of socks5 fails for a name that this machine does not know, and one that is away for each request', async () => {
    const { label, asked } = await startSocks();
    const unknown = { url: 'http://no.invalid/a.zip', bucket: 'archive' };
    const fails = (proxy: string) => refusal(through(proxy)(unknown, context()));
    expect((await fails(`socks5://${label}`)).code).toBe('host-unknown');
    for (const away of ['127.0.0.1:9', label.replace('127.0.0.1', 'no.invalid')])
      expect((await fails(`socks5h://${away}`)).message).toContain(away);
    expect(asked).toEqual([]);
  });

  it('of socks5 gets the first address of IPv4, or else of IPv6, and no request without an address', async () => {
    const { label, asked } = await startSocks();
    const six = { address: '::1', family: 6 };
    const urls = [await served('both.test'), await served('six.test')];
    resolving([six, { address: '127.0.0.1', family: 4 }], [six], []);
    const fetch = through(`socks5://${label}`);
    for (const url of urls) await fetch({ url, bucket: 'archive' }, context());
    expect(asked).toEqual(['1 7f000001', 'name ::1']);
    const error = await refusal(fetch({ url: 'http://none.test/', bucket: 'archive' }, context()));
    expect(error.message).toBe('none.test: no address');
  });
});

it('an HTTP proxy gets the requests of all hosts, and its own connections count for none', async () => {
  const proxy = await startProxy('anna:secret');
  onTestFinished(() => {
    proxy.stop();
  });
  const pools = wirePools({ proxies: { http: proxy.address, https: '', except: '' } });
  const urls = [await served(), await served('localhost')];
  const fetch = wire({ pools });
  for (const url of urls) await fetch({ url, bucket: 'archive' }, context());
  expect([proxy.asked, pools.use()]).toEqual([urls, { sockets: 0, busy: 0, queued: 0, most: 0 }]);
  expect(pools.proxyOf('http://a.test')?.href).toBe(`${proxy.address}/`);
  expect(pools.proxyOf('https://a.test')).toBeUndefined();
});

it('closes an idle connection, and no busy one, before one more than the most is opened', async () => {
  const closed: number[] = [];
  const open = new Set<Connection>();
  const fetch = wire({ most: 2, open });
  const busy = await wireServer((socket) => socket.once('close', () => closed.push(0)));
  const answered = fetch({ url: busy.url, bucket: 'archive' }, context());
  while (busy.heads.length === 0) await new Promise((resolve) => setImmediate(resolve));
  for (let server = 1; server < 3; server += 1) {
    const { url } = await wireServer((socket: Socket) => {
      socket.once('close', () => closed.push(server)).write(httpAnswer(200, 'it'));
    });
    await fetch({ url, bucket: 'archive' }, context());
  }
  await expect.poll(() => closed).toEqual([1]);
  expect(open.size).toBe(2);
  busy.sockets[0]?.end(httpAnswer(200, 'it'));
  expect((await answered).status).toBe(200);
  await expect.poll(() => open.size).toBe(1);
});
