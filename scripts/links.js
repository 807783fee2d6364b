// The links of a Markdown text: `[text](target)` outside of code.
import { posix } from 'node:path';

/**
 * @param {string} markdown
 * @returns {string[]} targets without a scheme, with their anchors
 */
export function relativeLinks(markdown) {
  const prose = markdown.replaceAll(/^```.*?^```/gms, '').replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^()\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/**
 * Splits a target: the path of the file from the root, and its anchor.
 * @param {string} file with the link, from the root
 * @param {string} target
 */
export function linkTarget(file, target) {
  const [path = '', anchor] = target.split('#');
  return { path: path === '' ? file : posix.join(posix.dirname(file), path), anchor };
}

/**
 * The anchors of a Markdown text, as GitHub makes them of headings.
 * @param {string} markdown
 */
export function anchors(markdown) {
  const prose = markdown.replaceAll(/^```.*?^```/gms, '');
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
