import { expect, it } from 'vitest';
import { timeout } from '../../src/http/transport/timeout.js';
import { CredentialSource } from '../../src/s3/credentials.js';
import { Secrets } from '../../src/s3/secrets.js';
import { sign } from '../../src/s3/sign.js';
import { answer, context, REQUEST } from '../helpers/requests.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

/** A request whose credentials never come. */
function waiting(outer = new AbortController()) {
  const clock = new VirtualClock();
  const credentials = new CredentialSource(() => new Promise(() => undefined), clock);
  const signed = sign({
    credentials,
    region: () => 'us-east-1',
    secrets: new Secrets(),
    shown: '',
    clock,
  });
  const layer = timeout({ clock, headersMs: 5000, idleMs: 5000, totalMs: 10_000 });
  const fetch = layer(signed(() => Promise.resolve(answer())));
  const ended = fetch(REQUEST, context(outer.signal)).then(
    () => 'answered',
    (error: unknown) => error,
  );
  return { clock, outer, ended: Promise.race([ended, clock.sleep(60_000).then(() => 'still waiting')]) };
}

it('the wait for credentials ends at the deadline of the attempt', async () => {
  const { clock, ended } = waiting();
  await clock.advance(60_000);
  expect(await ended).toMatchObject({ code: 'total-timeout' });
});

it('the wait for credentials ends with the run', async () => {
  const { outer, ended } = waiting();
  outer.abort('stopped');
  expect(await ended).toBe('stopped');
});
