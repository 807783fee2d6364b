/** The files of `cryptodl report` and `cryptodl plot`: what may be replaced, and what is left after an error. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { CryptodlError } from '../../src/model/errors.js';
import { refusePlace, writePage } from '../../src/page/page-file.js';
import type { PageKind } from '../../src/page/page-file.js';
import { scratchFolder } from '../helpers/folders.js';

const KIND: PageKind = { flag: 'html', what: 'report', start: '<!-- mine -->' };
let folder: string;
let path: string;

beforeEach(() => {
  folder = scratchFolder();
  path = join(folder, 'page.html');
});

describe('the place of a page', () => {
  it.each([
    ['nothing', undefined],
    ['an empty file', ''],
    ['a page of this kind', '<!-- mine -->\nold'],
  ])('may have %s', async (_, content) => {
    if (content !== undefined) writeFileSync(path, content);
    await expect(refusePlace(path, KIND, { force: false })).resolves.toBeUndefined();
  });

  it.each([
    ['the beginning of a page', '<!-- mine'],
    ['another file', 'notes'],
  ])('may not have %s without --force', async (_, content) => {
    writeFileSync(path, content);
    await expect(refusePlace(path, KIND, { force: false })).rejects.toThrow('is not replaced');
    await refusePlace(path, KIND, { force: true });
  });
});

describe('a page', () => {
  it('is written as a whole, in parts of any size, and its size is that in bytes', async () => {
    const parts = ['<!-- mine -->', 'é'.repeat(300_000), '', 'end'];
    const bytes = await writePage(path, KIND, parts);
    expect(readFileSync(path, 'utf8')).toBe(parts.join(''));
    expect([bytes, readdirSync(folder)]).toEqual([readFileSync(path).length, ['page.html']]);
  });

  it('that cannot be completed leaves its place as it was, and no other file', async () => {
    writeFileSync(path, '<!-- mine -->\nold');
    const parts = function* (): Generator<string> {
      yield 'x'.repeat(300_000);
      throw new CryptodlError('disk', 'the lake cannot be read');
    };
    await expect(writePage(path, KIND, parts())).rejects.toThrow('the lake cannot be read');
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['<!-- mine -->\nold', ['page.html']]);
  });

  it('whose place became a folder is an error with the flag', async () => {
    mkdirSync(join(path, 'in the way'), { recursive: true });
    const error: unknown = await writePage(path, KIND, ['x']).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'disk',
      message: expect.stringContaining(`--html ${path} cannot be written`) as string,
      hint: 'choose another place with --html',
    });
    expect([readdirSync(folder), existsSync(join(path, 'in the way'))]).toEqual([['page.html'], true]);
  });
});
