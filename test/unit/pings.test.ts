/** `--ping`: one GET beside all limits, over real sockets. */
import { describe, expect, it } from 'vitest';
import type { Pools } from '../../src/http/transport/pool.js';
import { ping } from '../../src/notify/pings.js';
import { NO_PROXIES } from '../../src/options/environment.js';
import { USER_AGENT } from '../../src/http/transport/sent-request.js';
import { refusal } from '../helpers/requests.js';
import { VirtualClock } from '../helpers/virtual-clock.js';
import { wirePools } from '../helpers/wire.js';
import { closedPort, httpAnswer, wireServer } from '../helpers/wire-server.js';

const TIMEOUT_MS = 5000;

function pinging() {
  const clock = new VirtualClock();
  const pools = [wirePools()];
  return { clock, send: (url: string) => ping({ pools, clock, timeoutMs: TIMEOUT_MS }, url) };
}

describe('a ping', () => {
  it('asks for the address with its query, and says by which program', async () => {
    const { url, heads } = await wireServer((socket) => socket.write(httpAnswer(200, 'OK')));
    const { clock, send } = pinging();
    await send(`${url}/secret/start?rid=1&x=a%20b`);
    expect(heads).toHaveLength(1);
    expect(heads[0]).toMatch(/^GET \/secret\/start\?rid=1&x=a%20b HTTP\/1\.1\r\n/);
    expect(heads[0]).toContain(`user-agent: ${USER_AGENT}`);
    expect(clock.waiting).toBe(0);
  });

  it.each([200, 201, 204, 299])('is heard when it is answered with %d', async (status) => {
    const { url } = await wireServer((socket) =>
      socket.write(status === 204 ? 'HTTP/1.1 204 Said\r\n\r\n' : httpAnswer(status, 'OK')),
    );
    await expect(pinging().send(url)).resolves.toBeUndefined();
  });

  it.each([300, 302, 404, 500])('fails when it is answered with %d; the path is not told', async (status) => {
    const { url } = await wireServer((socket) => socket.write(httpAnswer(status, 'no')));
    const { clock, send } = pinging();
    const error = await refusal(send(`${url}/secret`));
    expect([error.code, error.message]).toEqual(['http-refused', `${new URL(url).host} answered ${status}`]);
    expect(clock.waiting).toBe(0);
  });

  it('waits for an answer until its time is over, and hangs up', async () => {
    const { url, heads, sockets } = await wireServer(() => undefined);
    const { clock, send } = pinging();
    const ended = refusal(send(`${url}/secret`));
    while (heads.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(TIMEOUT_MS - 1);
    expect(sockets[0]?.destroyed).toBe(false);
    await clock.advance(1);
    const error = await ended;
    expect([error.code, error.message]).toEqual([
      'total-timeout',
      `${new URL(url).host}: no answer within 5s`,
    ]);
    expect(clock.waiting).toBe(0);
  });

  it('is sent through the next proxy while a proxy does not work', async () => {
    const { url } = await wireServer((socket) => socket.write(httpAnswer(200, 'OK')));
    const address = `127.0.0.1:${await closedPort()}`;
    const dead = { ...NO_PROXIES, http: `http://${address}` };
    const clock = new VirtualClock();
    const through = (pools: readonly Pools[]) =>
      ping({ pools, clock, timeoutMs: TIMEOUT_MS }, `${url}/secret`);
    await expect(
      through([wirePools({ proxies: dead }), wirePools({ proxies: dead }), wirePools()]),
    ).resolves.toBeUndefined();
    const error = await refusal(through([wirePools({ proxies: dead }), wirePools({ proxies: dead })]));
    expect([error.code, error.message.includes(address)]).toEqual(['proxy-unreachable', true]);
    expect(clock.waiting).toBe(0);
  });

  it('fails with a typed error where nothing listens, or the connection breaks; the path is not told', async () => {
    const { clock, send } = pinging();
    const port = await closedPort();
    const error = await refusal(send(`http://127.0.0.1:${port}/secret`));
    expect([error.code, error.message]).toEqual([
      'connect-failed',
      `127.0.0.1:${port}: connect ECONNREFUSED 127.0.0.1:${port}`,
    ]);
    const { url } = await wireServer((socket) => socket.end());
    const lost = await refusal(send(`${url}/secret`));
    expect(lost.code).toBe('connection-lost');
    expect(lost.message).not.toContain('secret');
    expect(clock.waiting).toBe(0);
  });
});
