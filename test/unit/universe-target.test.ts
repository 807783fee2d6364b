/** The files of `cryptodl universe --target`. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pairlistText } from '../../src/universe/pairlist.js';
import { isOwnPairlist, writeTarget } from '../../src/universe/target.js';
import { scratchFolder } from '../helpers/folders.js';

const scratch = scratchFolder();
const OWN = pairlistText(['BTC/USDT']);
const NEW = pairlistText(['ETH/USDT']);

/** Writes a new list while another program writes `other` to the same place. */
function writeDuring(path: string, other: string, force = false): Promise<void> {
  return writeTarget(path, { force, isOwn: isOwnPairlist, what: 'a list' }, async (staged) => {
    await writeFile(staged, NEW);
    writeFileSync(path, other);
  });
}

describe('a file that appears while the target is written', () => {
  it('is kept, and no staged file stays', async () => {
    const path = join(scratch, 'foreign.json');
    await expect(writeDuring(path, 'of the user')).rejects.toThrow(
      'foreign.json is not a list, and is not replaced',
    );
    expect(readFileSync(path, 'utf8')).toBe('of the user');
    expect(readdirSync(scratch).filter((name) => name.endsWith('.partial'))).toEqual([]);
  });

  it.each([
    ['of this verb', OWN, false],
    ['with --force', 'of the user', true],
  ])('is replaced: %s', async (_, other, force) => {
    const path = join(scratch, `${String(force)}.json`);
    await writeDuring(path, other, force);
    expect(readFileSync(path, 'utf8')).toBe(NEW);
  });
});
