/** The values of `--prometheus-port` and `--prometheus-textfile`. */
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../src/model/errors.js';
import { endpoint, endpointText, promFile } from '../../src/options/monitoring.js';

/** The message and the correction of a refused value. */
function refusal(parse: (text: string, where: string) => unknown, text: string): unknown {
  try {
    return parse(text, '--x');
  } catch (error) {
    if (!(error instanceof CryptodlError)) throw error;
    return error.correction?.value ?? 'none';
  }
}

describe('--prometheus-port', () => {
  it.each([
    ['9464', '127.0.0.1', 9464],
    ['0.0.0.0:9464', '0.0.0.0', 9464],
    ['localhost:1', 'localhost', 1],
    ['[::1]:65535', '::1', 65_535],
  ])('takes %s', (text, host, port) => {
    expect(endpoint(text, '--x')).toEqual({ host, port });
    expect(endpoint(endpointText({ host, port }), '--x')).toEqual({ host, port });
  });

  it.each([
    ['0', 'none'],
    ['65536', 'none'],
    ['', 'none'],
    ['localhost', 'none'],
    ['::1:9464', 'none'],
    [':9464', '0.0.0.0:9464'],
    ['http://127.0.0.1:9464/metrics', '127.0.0.1:9464'],
  ])('refuses "%s" and offers %s', (text, offered) => {
    expect(refusal(endpoint, text)).toBe(offered);
  });
});

describe('--prometheus-textfile', () => {
  it('takes names that end in .prom', () => {
    expect(promFile('/var/lib/x/cryptodl.prom', '--x')).toBe('/var/lib/x/cryptodl.prom');
  });

  it.each([
    ['cryptodl', 'cryptodl.prom'],
    ['a.b/cryptodl.txt', 'a.b/cryptodl.prom'],
    ['a.b/cryptodl', 'a.b/cryptodl.prom'],
    ['folder/', 'none'],
    ['folder/.prom', 'none'],
    ['', 'none'],
  ])('refuses "%s" and offers %s', (text, offered) => {
    expect(refusal(promFile, text)).toBe(offered);
  });
});
