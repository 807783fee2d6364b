/** Sockets and what they trust, over real ones. */
import { BINANCE_ANSWERS } from '../../../src/exchange/binance/answers.js';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/model/clock.js';
import { UNLIMITED } from '../../../src/http/transport/bandwidth.js';
import { createTransport } from '../../../src/http/transport/transport.js';
import { HAS_OPENSSL, makeCertificate } from '../../helpers/certificates.js';
import { scratchFolder } from '../../helpers/folders.js';
import { answer, context, refusal } from '../../helpers/requests.js';
import { resolving, wire, wirePools, withoutDeadlines } from '../../helpers/wire.js';
import { httpAnswer, wireServer } from '../../helpers/wire-server.js';

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
    for (const socket of [waiting[0], waiting[4]]) socket?.write(httpAnswer(200, 'x'));
    await Promise.all(asked);
    expect(pools.use()).toEqual({ sockets: 3, busy: 0, queued: 0, most: 4 });
    await pools.close();
    const late = fetch({ url: idle.url, bucket: 'archive' }, context());
    await expect(late).rejects.toMatchObject({ code: 'UND_ERR_DESTROYED' });
  });
});

describe('a connection', () => {
  it('that failed has the resolver asked again: the next one goes where the name points by then', async () => {
    const { url } = await wireServer((socket) => socket.write(httpAnswer(200, 'x')));
    const { port } = new URL(url);
    // Nothing listens at the first address.
    const names = resolving([{ address: '::1', family: 6 }], [{ address: '127.0.0.1', family: 4 }]);
    const pools = wirePools();
    const fetch = wire({ pools });
    const asked = { url: `http://moved.test:${port}/a.zip`, bucket: 'archive' };
    expect((await refusal(fetch(asked, context()))).code).toBe('connect-failed');
    await Promise.all([fetch(asked, context()), fetch(asked, context()), fetch(asked, context())]);
    expect(names).toEqual(['moved.test', 'moved.test']);
    expect(pools.dns()).toMatchObject({ misses: 2, failures: 0 });
  });

  it('is kept for the given time, also if the host offers a longer one; 0 keeps none', async () => {
    const offer = ['Keep-Alive: timeout=600'];
    const { url, sockets } = await wireServer((socket) => socket.write(httpAnswer(200, 'x', offer)));
    const asked = { url, bucket: 'archive' };
    const fetch = wire({ connections: 1, keepAliveMs: 0 });
    for (let time = 0; time < 2; time += 1) await fetch(asked, context());
    expect(sockets).toHaveLength(2);
    await wire({ keepAliveMs: 20 })(asked, context());
    while (sockets[2]?.destroyed !== true) await new Promise((resolve) => setImmediate(resolve));
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
    await once(server.listen(0, '127.0.0.1'), 'listening');
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
