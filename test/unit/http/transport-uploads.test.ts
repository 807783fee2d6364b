/** Requests that send a body, over real sockets. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { timeoutLayer } from '../../../src/http/transport/timeout.js';
import type { FetchRequest, Sign } from '../../../src/model/fetch.js';
import { answer, context, refusal } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';
import { wire } from '../../helpers/wire.js';

const MIB = 1024 * 1024;
const LARGE = Buffer.from(Uint8Array.from({ length: 3 * MIB }, (_, index) => (index * 31) % 251));

async function httpServer(
  act: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(act);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/key`;
}

function put(url: string, sends: Buffer): FetchRequest {
  return { url, bucket: 's3', method: 'PUT', sends };
}

describe('a request with a body', () => {
  it('sends its length, and not in chunks of HTTP', async () => {
    const bodies: Buffer[] = [];
    const heads: IncomingMessage['headers'][] = [];
    const url = await httpServer((request, response) => {
      heads.push(request.headers);
      request.on('data', (chunk: Buffer) => bodies.push(chunk));
      request.on('end', () => response.writeHead(204).end());
    });
    const signs: Sign[] = [];
    const response = await wire()(put(url, LARGE), {
      ...context(),
      onActivity: (sign) => signs.push(sign),
    });
    expect(response.status).toBe(200);
    expect(Buffer.concat(bodies).equals(LARGE)).toBe(true);
    expect(heads[0]).toMatchObject({ 'content-length': String(LARGE.length) });
    expect(heads[0]).not.toHaveProperty('transfer-encoding');
    expect(signs.filter((sign) => sign === 'uploading')).toHaveLength(48);
    expect(signs).not.toContain('paused');
  });

  it.each([
    [412, 412],
    [501, 501],
    [404, 404],
    [201, 200],
  ])('takes %d as an answer with status %d', async (sent, status) => {
    const url = await httpServer((request, response) => {
      request.resume().on('end', () => response.writeHead(sent).end('why'));
    });
    expect(await wire()(put(url, LARGE.subarray(0, 10)), context())).toMatchObject({ status });
  });

  it('takes 412 and 501 of a GET, and 300 of a PUT, as errors', async () => {
    for (const [method, status, code] of [
      ['GET', 412, 'http-refused'],
      ['GET', 501, 'http-server-error'],
      ['PUT', 300, 'redirect-refused'],
    ] as const) {
      const url = await httpServer((_, response) => response.writeHead(status).end());
      expect((await refusal(wire()({ url, bucket: 's3', method }, context()))).code).toBe(code);
    }
  });

  it('has no body in the answer to HEAD, whose Content-Length is that of the object', async () => {
    const url = await httpServer((_, response) => response.writeHead(200, { 'content-length': 12345 }).end());
    const response = await wire()({ url, bucket: 's3', method: 'HEAD' }, context());
    expect(response).toMatchObject({ status: 200, headers: { 'content-length': '12345' } });
  });

  it('waits for the bandwidth', async () => {
    const order: string[] = [];
    const url = await httpServer((request, response) => {
      request.resume().on('end', () => response.writeHead(200).end());
    });
    const take = async (bytes: number): Promise<void> => {
      await Promise.resolve();
      order.push(`waited for ${bytes}`);
    };
    const onActivity = (sign: Sign): unknown => order.push(sign);
    await wire({ bandwidth: { take } })(put(url, LARGE.subarray(0, 65_537)), { ...context(), onActivity });
    expect(order.filter((step) => !['sent', 'headers'].includes(step))).toEqual(
      [65_536, 1].flatMap((bytes) => ['paused', `waited for ${bytes}`, 'uploading']),
    );
  });
});

describe('the deadlines of a request with a body', () => {
  const OPTIONS = { headersTimeoutMs: 1000, idleTimeoutMs: 1000, totalTimeoutMs: 5000 };

  /** The answer to a request for which the test does this, on a clock of its own. */
  async function sent(
    size: number,
    act: (tell: (sign: Sign, bytes?: number) => void, sleep: (ms: number) => Promise<void>) => Promise<void>,
  ) {
    const clock = new VirtualClock();
    const fetch = timeoutLayer(
      clock,
      OPTIONS,
    )(async (_, { onActivity, expiry }) => {
      const tell = (sign: Sign, bytes?: number): void => onActivity?.(sign, bytes);
      tell('sent');
      const over = new AbortController();
      expiry?.onOver((reason) => {
        over.abort(reason);
      });
      await act(tell, (ms) => clock.sleep(ms, over.signal));
      return answer();
    });
    const response = fetch(put('http://s3.test/key', Buffer.alloc(size)), context());
    response.catch(() => undefined);
    await clock.advance(60_000);
    return response;
  }

  it('that for the headers begins again with each chunk, the total one is longer', async () => {
    const size = 160 * 1024;
    // 14 seconds in all, of 5 and one for each 16 KiB.
    const response = await sent(size, async (tell, sleep) => {
      for (let chunk = 0; chunk < 20; chunk += 1) {
        await sleep(700);
        tell('uploading', size / 20);
      }
    });
    expect(response).toMatchObject({ status: 200 });
  });

  it('that for the headers ends a request whose body does not go out', async () => {
    const ended = sent(10, async (tell, sleep) => {
      tell('uploading', 1);
      await sleep(3000);
    });
    expect((await refusal(ended)).code).toBe('headers-timeout');
  });

  it('do not count the pauses of this machine', async () => {
    const response = await sent(10, async (tell, sleep) => {
      tell('paused');
      await sleep(20_000);
      tell('uploading', 10);
      await sleep(900);
    });
    expect(response).toMatchObject({ status: 200 });
  });

  it('count again after a pause', async () => {
    const ended = sent(10, async (tell, sleep) => {
      tell('paused');
      for (let chunk = 0; chunk < 20; chunk += 1) {
        tell('uploading', 1);
        await sleep(900);
      }
    });
    expect((await refusal(ended)).code).toBe('total-timeout');
  });
});
