/** The number of sockets, the requests that wait for one, and the authorities that sockets trust. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/model/clock.js';
import { SharedResources } from '../../../src/model/shared-resources.js';
import { NO_PROXIES } from '../../../src/files/proxies.js';
import { authoritiesOf, poolOptions, socketsPerHost } from '../../../src/http/transport/sockets.js';
import { socketLayer } from '../../../src/http/throttle/in-flight.js';
import { scratchFolder } from '../../helpers/folders.js';
import { context } from '../../helpers/requests.js';

const folder = scratchFolder();
const LIMITS = { poolLimit: undefined, poolLimitPerHost: undefined, mostInFlight: 10 };
const OPTIONS = { ...LIMITS, keepAliveMs: 1, connectTimeoutMs: 1, http2: false, caFile: undefined };

it('are two for each object in flight and eight for the listing, or as many as the flags say', () => {
  const flags = [{}, { poolLimit: 20 }, { poolLimitPerHost: 3 }, { poolLimitPerHost: 30, poolLimit: 20 }];
  expect(flags.map((given) => socketsPerHost({ ...OPTIONS, ...given }))).toEqual([28, 20, 3, 20]);
});

it.each([
  [undefined, undefined, ['a.test/1', 'a.test/2', 'a.test/3', 'b.test/1', 'b.test/2']],
  [3, 2, ['a.test/1', 'a.test/2', 'b.test/1']],
])('with %s in all and %s of a host, the others wait', async (poolLimit, poolLimitPerHost, begun) => {
  const asked: string[] = [];
  const options = { ...OPTIONS, poolLimit, poolLimitPerHost };
  const fetch = socketLayer({ options, clock: systemClock, proxies: NO_PROXIES })(({ url }) => {
    asked.push(url.slice('http://'.length));
    return new Promise(() => undefined);
  });
  for (const place of ['a.test/1', 'a.test/2', 'a.test/3', 'b.test/1', 'b.test/2'])
    void fetch({ url: `http://${place}`, bucket: 'archive' }, context());
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toEqual(begun);
});

it('are counted together in all jobs of a process', () => {
  const scope = { options: OPTIONS, clock: systemClock, proxies: NO_PROXIES };
  const shared = poolOptions({ ...scope, common: new SharedResources() });
  expect([poolOptions(scope).open, shared.open]).toEqual([undefined, new Set()]);
});

it('trust the certificates of a file, which must have one', () => {
  const [file, other] = [join(folder, 'ca.pem'), join(folder, 'other.pem')];
  writeFileSync(file, '-----BEGIN CERTIFICATE-----');
  writeFileSync(other, 'text');
  expect([authoritiesOf(undefined), authoritiesOf(file)]).toEqual([undefined, '-----BEGIN CERTIFICATE-----']);
  expect(() => authoritiesOf(other)).toThrow('holds no certificate');
  expect(() => authoritiesOf(`${file}.none`)).toThrow('no such file');
});
