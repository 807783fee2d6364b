/** The files that flags name: what may be replaced, and what is left after an error. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { beginsWith, refuseForeignFile, writeOwnFile } from '../../../src/files/own-file.js';
import type { OwnFile } from '../../../src/files/own-file.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { scratchFolder } from '../../helpers/folders.js';

const MINE = '<!-- mine -->';
let folder: string;
let path: string;

beforeEach(() => {
  folder = scratchFolder();
  path = join(folder, 'page.html');
});

function own(force = false): OwnFile {
  return { flag: 'html', path, what: 'a report', isOwn: beginsWith(MINE), force };
}

describe('the place of a file', () => {
  it.each([
    ['nothing', undefined],
    ['an empty file', ''],
    ['a file of this kind', `${MINE}\nold`],
  ])('may have %s', async (_, content) => {
    if (content !== undefined) writeFileSync(path, content);
    await expect(refuseForeignFile(own())).resolves.toBeUndefined();
  });

  it.each([
    ['the beginning of such a file', '<!-- mine'],
    ['another file', 'notes'],
  ])('may not have %s without --force', async (_, content) => {
    writeFileSync(path, content);
    await expect(refuseForeignFile(own())).rejects.toThrow('page.html is not a report, and is not replaced');
    await refuseForeignFile(own(true));
  });

  it.each<[string, (place: string) => void]>([
    ['a folder', (place) => mkdirSync(place)],
    ['a link', (place) => symlinkSync(join(folder, 'other'), place)],
  ])('may not be %s, also with --force', async (what, make) => {
    make(path);
    await expect(refuseForeignFile(own(true))).rejects.toThrow(`is ${what}, and is not replaced`);
  });
});

describe('a file', () => {
  it('appears as a whole, also in a new folder, and its size is that in bytes', async () => {
    path = join(folder, 'new/page.html');
    const text = `${MINE}${'é'.repeat(300_000)}`;
    const bytes = await writeOwnFile(own(), async (staged) => {
      await writeFile(staged, text);
      expect(existsSync(path)).toBe(false);
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect([bytes, readdirSync(join(folder, 'new'))]).toEqual([readFileSync(path).length, ['page.html']]);
  });

  it('that cannot be completed leaves its place as it was, and no other file', async () => {
    writeFileSync(path, `${MINE}\nold`);
    const written = writeOwnFile(own(), async (staged) => {
      await writeFile(staged, 'x');
      throw new CryptodlError('disk', 'the lake cannot be read');
    });
    await expect(written).rejects.toThrow('the lake cannot be read');
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual([`${MINE}\nold`, ['page.html']]);
  });

  it.each([
    ['of the user is kept', 'of the user', false, 'of the user'],
    ['of the program is replaced', `${MINE} other`, false, 'new'],
    ['of the user is replaced with --force', 'of the user', true, 'new'],
  ])('that appears meanwhile and is %s', async (_, other, force, left) => {
    const written = writeOwnFile(own(force), async (staged) => {
      await writeFile(staged, 'new');
      writeFileSync(path, other);
    });
    if (left === 'new') await written;
    else await expect(written).rejects.toThrow('is not a report, and is not replaced');
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual([left, ['page.html']]);
  });

  it('in a folder that cannot be made is an error with the flag', async () => {
    writeFileSync(join(folder, 'file'), '');
    path = join(folder, 'file/page.html');
    const error: unknown = await writeOwnFile(own(), (staged) => writeFile(staged, 'x')).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({
      code: 'disk',
      message: expect.stringContaining(`--html ${path} cannot be written`) as string,
      hint: 'choose another place with --html',
    });
  });
});
