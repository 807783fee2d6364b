/** Sockets and what they trust, over real ones. */
import { BINANCE_ANSWERS } from '../../src/source/binance/binance.js';
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/model/clock.js';
import { UNLIMITED } from '../../src/http/transport/sockets.js';
import { createTransport } from '../../src/http/transport/transport.js';
import { HAS_OPENSSL, makeCertificate } from '../helpers/certificates.js';
import { scratchFolder } from '../helpers/folders.js';
import { answer, context, refusal } from '../helpers/requests.js';
import { wire, wirePools, withoutDeadlines } from '../helpers/wire.js';
import { httpAnswer, wireServer } from '../helpers/wire-server.js';

const folder = scratchFolder();

describe('the use of the sockets', () => {
  it('has the open ones, the busy ones, the requests that wait, and the most that there may be', async () => {
    const pools = wirePools({ connections: 2 });
    expect(pools.use()).toEqual({ sockets: 0, busy: 0, queued: 0, most: 0 });
    const fetch = withoutDeadlines(
      createTransport({ pools, clock: systemClock, bandwidth: UNLIMITED, ...BINANCE_ANSWERS }),
    );
    const waiting: Socket[] = [];
    const busy = await wireServer((socket) => waiting.push(socket));
    const idle = await wireServer((socket) => socket.write(httpAnswer(200, 'x')));
    await fetch({ url: idle.url, bucket: 'archive' }, context());
    expect(pools.use()).toEqual({ sockets: 1, busy: 0, queued: 0, most: 2 });
    const asked = Array.from({ length: 5 }, () => fetch({ url: busy.url, bucket: 'archive' }, context()));
    while (waiting.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(pools.use()).toEqual({ sockets: 3, busy: 2, queued: 3, most: 4 });
    while (waiting.length < 5) {
      waiting[waiting.length - 1]?.write(httpAnswer(200, 'x'));
      const { length } = waiting;
      while (waiting.length === length) await new Promise((resolve) => setImmediate(resolve));
    }
    for (const socket of waiting.slice(3)) socket.write(httpAnswer(200, 'x'));
    for (const socket of waiting.slice(0, 1)) socket.write(httpAnswer(200, 'x'));
    await Promise.all(asked);
    expect(pools.use()).toEqual({ sockets: 3, busy: 0, queued: 0, most: 4 });
  });
});

describe('a connection', () => {
  it('that failed has the resolver asked again: the next one goes where the name points by then', async () => {
    const { url } = await wireServer((socket) => socket.write(httpAnswer(200, 'x')));
    const { port } = new URL(url);
    // Nothing listens at the first address.
    const answers = [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ];
    const questions: string[] = [];
    const systemLookup = dns.lookup;
    onTestFinished(() => {
      dns.lookup = systemLookup;
      syncBuiltinESMExports();
    });
    dns.lookup = ((name: string, _: unknown, tell: (error: null, all: unknown) => void) => {
      questions.push(name);
      tell(null, answers.slice(questions.length - 1, questions.length));
    }) as never;
    syncBuiltinESMExports();
    const fetch = wire();
    const asked = { url: `http://moved.test:${port}/a.zip`, bucket: 'archive' };
    expect((await refusal(fetch(asked, context()))).code).toBe('connect-failed');
    await Promise.all([fetch(asked, context()), fetch(asked, context()), fetch(asked, context())]);
    expect(questions).toEqual(['moved.test', 'moved.test']);
  });

  it.each([undefined, 'PEM of an authority'])(
    'that does not come to its end is given up after the given time (authorities: %s)',
    async (authorities) => {
      const { url } = await wireServer(() => undefined);
      const fetch = wire({ connectTimeoutMs: 100, authorities });
      const asked = { url: `${url.replace('http:', 'https:')}/a.zip`, bucket: 'archive' };
      const error = await refusal(fetch(asked, context()));
      expect(error.code).toBe('connect-timeout');
      expect(error.message).toContain('timeout: 100ms');
    },
  );
});

describe.skipIf(!HAS_OPENSSL)('authorities (needs openssl)', () => {
  it('that are given are trusted besides the usual ones, and no others', async () => {
    const { key, cert } = makeCertificate(folder, 'own', { names: 'IP:127.0.0.1', days: 2 });
    const other = makeCertificate(folder, 'other', { names: 'IP:127.0.0.1', days: 2 });
    const server = createServer({ key, cert }, (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write(httpAnswer(200, 'it')));
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const asked = { url: `https://127.0.0.1:${port}/a.zip`, bucket: 'archive' };
    expect((await wire({ authorities: cert })(asked, context())).sha256).toBe(answer('it').sha256);
    for (const authorities of [undefined, other.cert]) {
      const error = await refusal(wire({ authorities })(asked, context()));
      expect(error.code).toBe('tls-failed');
      expect(error.hint).toContain('--ca-file FILE');
    }
  });
});
