import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { FAST, cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

describe('bad input', () => {
  const scene = useScene({
    archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-14', to: '2026-11-20' }],
  });
  const { scratch } = scene;
  beforeAll(() => {
    writeFileSync(join(scratch, 'unknown-key.yaml'), 'symbols: BTCUSDT\nconcurency: 5\n');
    writeFileSync(join(scratch, 'empty.txt'), '# nothing\n\n');
  });

  it.each<{ args: readonly string[]; says: string; hint?: string }>([
    { args: ['help', 'vison'], says: '"vison" is not a command', hint: 'did you mean vision?' },
    { args: ['vison', '--help'], says: '"vison" is not a command', hint: 'did you mean vision?' },
    { args: ['retry', 'nowhere.jsonl'], says: 'cannot read nowhere.jsonl (no such file or folder)' },
    // A device that never ends.
    { args: ['vision', '-s', '@/dev/zero'], says: 'cannot read /dev/zero (it is too large)' },
    { args: ['retry', 'unknown-key.yaml'], says: 'unknown-key.yaml line 1 is not JSON' },
  ])('cryptodl $args says "$says" and ends with 2', async ({ args, says, hint }) => {
    const result = await cryptodl(args, { cwd: scratch });
    expect(result.stderr).toContain(says);
    expect(result.stderr).toContain(hint ?? '');
    expect(result.code).toBe(2);
  });

  it.each([
    ['vision', ['--symbols', 'BTCUSDT']],
    ['vision', []],
    ['metrics', ['--symbols', 'BTCUSDT']],
    ['repair', []],
    ['verify', []],
    ['coverage', []],
    ['sql', ['SHOW TABLES']],
    ['audit', []],
  ])('%s %j with a file as --out ends with 2, says where, and asks no host', async (verb, flags) => {
    const out = join(scratch, 'empty.txt');
    const isOnline = !['coverage', 'sql'].includes(verb);
    const online = isOnline ? ['--archive-url', scene.archive.url] : [];
    if (verb === 'metrics') online.push('--fapi-url', scene.archive.url);
    scene.archive.requests.length = 0;
    const result = await cryptodl([verb, ...flags, '--out', out, ...online]);
    expect(result.stderr).toContain(`cryptodl: --out: ${out} is a file, not a folder\n`);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    expect([result.code, result.stdout, scene.archive.requests]).toEqual([2, '', []]);
  });

  it('metrics without a network says what cannot be reached, and names the address', async () => {
    const where = ['--fapi-url', '--archive-url', '--listing-url'].flatMap((flag) => [
      flag,
      'http://127.0.0.1:9',
    ]);
    const what = ['--symbols', 'BTCUSDT', '--days', '1', '--out', join(scratch, 'nobody-metrics')];
    const result = await cryptodl(['metrics', ...what, ...where, ...FAST, '--retries', '0']);
    expect([result.code, result.stderr]).toEqual([
      1,
      'cryptodl: REST cannot be reached: 127.0.0.1:9: connect ECONNREFUSED 127.0.0.1:9\n' +
        '  check the network and the flags for the addresses of REST\n',
    ]);
  });
});
