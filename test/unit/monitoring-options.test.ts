/** The values of `--prometheus-port` and `--prometheus-textfile`. */
import { expect, it } from 'vitest';
import { endpoint, endpointText, promFile } from '../../src/plan/options/addresses.js';

it.each(['127.0.0.1:9464', '[::1]:65535'])('--prometheus-port is printed as %s', (text) => {
  expect(endpointText(endpoint(text, '--x'))).toBe(text);
});

it('--prometheus-textfile takes names that end in .prom', () => {
  expect(promFile('/var/lib/x/cryptodl.prom', '--x')).toBe('/var/lib/x/cryptodl.prom');
  for (const text of ['cryptodl', 'a.b/cryptodl.txt', 'folder/', 'folder/.prom', ''])
    expect(() => promFile(text, '--x')).toThrow('is not a file with the ending .prom');
});
