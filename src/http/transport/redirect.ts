/** Follows redirects within one attempt: to the same host or a host of the run, never from https to http. */
import { CryptodlError, hostError } from '../../model/errors.js';
import type { Layer } from '../../model/fetch.js';

const MOST = 3;

/** `hosts`: the host and port of each server to which a redirect may lead. */
export function redirectLayer(hosts: ReadonlySet<string>): Layer {
  return (next) => async (request, context) => {
    let url = request.url;
    for (let followed = 0; ; followed += 1) {
      try {
        // Nearly all requests are not redirected, and need no copy.
        return await next(followed === 0 ? request : { ...request, url }, context);
      } catch (error) {
        if (!(error instanceof CryptodlError) || error.location === undefined) throw error;
        url = target(url, error, error.location, hosts);
        if (followed === MOST)
          throw hostError('redirect-refused', new URL(url).host, `redirects more than ${MOST} times`, {
            cause: error,
          });
      }
    }
  };
}

function target(from: string, cause: CryptodlError, location: string, hosts: ReadonlySet<string>): string {
  const refuse = (reason: string): CryptodlError =>
    hostError('redirect-refused', new URL(from).host, `redirects to ${location}, ${reason}`, { cause });
  if (!URL.canParse(location, from)) throw refuse('which is not an address');
  const there = new URL(location, from);
  const here = new URL(from);
  if (there.host !== here.host && !hosts.has(there.host)) throw refuse('a host that this run does not know');
  const isSafe = there.protocol === 'https:' || (there.protocol === 'http:' && here.protocol === 'http:');
  if (!isSafe) throw refuse('which is less secure');
  return there.href;
}
