/** The values of `--prometheus-port` and `--prometheus-textfile`. */
import { describe, expect, it } from 'vitest';
import { endpoint, endpointText, promFile } from '../../src/options/addresses.js';

describe('--prometheus-port', () => {
  it.each(['127.0.0.1:9464', '[::1]:65535'])('is printed as %s', (text) => {
    expect(endpointText(endpoint(text, '--x'))).toBe(text);
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
