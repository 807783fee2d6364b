/** The values of `--prometheus-port` and `--prometheus-textfile`. */
import { describe, expect, it } from 'vitest';
import { endpoint, endpointText, promFile } from '../../src/options/monitoring.js';

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

  it.each(['0', '65536', '', 'localhost', '::1:9464'])('refuses "%s"', (text) => {
    expect(() => endpoint(text, '--x')).toThrow('is not a port from 1 to 65535');
  });
});

describe('--prometheus-textfile', () => {
  it('takes names that end in .prom', () => {
    expect(promFile('/var/lib/x/cryptodl.prom', '--x')).toBe('/var/lib/x/cryptodl.prom');
  });

  it.each(['cryptodl', 'a.b/cryptodl.txt', 'folder/', 'folder/.prom', ''])('refuses "%s"', (text) => {
    expect(() => promFile(text, '--x')).toThrow('is not a file with the ending .prom');
  });
});
