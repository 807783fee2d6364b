/** The links of README.md, ARCHITECTURE.md, CHANGELOG.md and docs/. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { anchors, linkTarget, relativeLinks } from '../../scripts/links.js';

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const read = (path: string): string => readFileSync(file(path), 'utf8');
const documents = (folder: string): string[] =>
  readdirSync(file(folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`);
const guides = documents('docs');
const all = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', ...guides, ...documents('docs/adr')];

const isDead = (document: string, target: string): boolean => {
  const { path, anchor } = linkTarget(document, target);
  return !existsSync(file(path)) || (anchor !== undefined && !anchors(read(path)).includes(anchor));
};

describe('documents', () => {
  it.each(all)('%s has no dead link', (document) => {
    expect(relativeLinks(read(document)).filter((target) => isDead(document, target))).toEqual([]);
  });

  it('are all in the table of docs/README.md', () => {
    const linked = relativeLinks(read('docs/README.md')).map(
      (target) => linkTarget('docs/README.md', target).path,
    );
    expect(guides.filter((guide) => guide !== 'docs/README.md' && !linked.includes(guide))).toEqual([]);
  });
});

describe('a link', () => {
  it('is found outside of code only, and leads from its document', () => {
    const text = '[a](b.md#some-part)\n\n```\n[c](d.md)\n```\n\n`[e](f.md)` [g](https://h) ![i](j.svg)';
    expect(relativeLinks(text)).toEqual(['b.md#some-part', 'j.svg']);
    expect(linkTarget('docs/a.md', '../b.md#some-part')).toEqual({ path: 'b.md', anchor: 'some-part' });
    expect(linkTarget('docs/a.md', '#top')).toEqual({ path: 'docs/a.md', anchor: 'top' });
  });

  it('has the anchors of the headings, but not of comments in code', () => {
    expect(anchors('# One, `two` & three\n\n```sh\n# four\n```\n')).toEqual(['one-two--three']);
  });
});
