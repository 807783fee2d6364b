/** `cryptodl man` and the man page of the package. */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodlOk } from '../helpers/cli.js';

const ROOT = new URL('../../', import.meta.url);

let page: string;
beforeAll(async () => {
  page = (await cryptodlOk(['man'])).stdout;
});

describe('the man page', () => {
  it('is the file dist/cryptodl.1 that package.json names', () => {
    const { man, files } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
      man: string;
      files: readonly string[];
    };
    expect(man).toBe('dist/cryptodl.1');
    expect(files).toContain('dist');
    expect(readFileSync(new URL(man, ROOT), 'utf8')).toBe(page);
  });
});
