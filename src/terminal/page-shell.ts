/** The page around the data: markup, style and script, without any text from a lake; and data that cannot become markup. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beginsWith, type OwnFile } from '../files/own-file.js';
import { packageFile } from '../files/package-file.js';
import { jsonText } from '../text/printable.js';

export type PageVerb = 'report' | 'plot';

const pageStart = (verb: PageVerb): string => `<!doctype html>\n<!-- cryptodl ${verb} -->\n`;

/** The file of --html. A file that begins like a page of the verb may be replaced. */
export function pageFile(verb: PageVerb, path: string, force: boolean): OwnFile {
  return { flag: 'html', path, what: `a ${verb}`, isOwn: beginsWith(pageStart(verb)), force };
}

/** `scripts/make-page.js` makes the assets from `assets/` and uPlot. */
const asset = (verb: PageVerb, name: string): string =>
  readFileSync(packageFile(`dist/${verb}-page/${name}`), 'utf8');

/** The elements of the data stand between `before` and `after`. The policy allows no request and no other script or style. */
export function pageShell(verb: PageVerb) {
  const style = asset(verb, 'page.css');
  const script = asset(verb, 'page.js');
  const policy = [
    "default-src 'none'",
    `script-src ${hashSource(script)}`,
    `style-src ${hashSource(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return {
    before: `${pageStart(verb)}<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>cryptodl ${verb}</title>
<style>${style}</style>
</head>
<body>
<noscript>This page draws its data with its own script. Allow scripts for this file.</noscript>
`,
    after: `<script>${script}</script>
</body>
</html>
`,
  };
}

/** One element with data. `content` is JSON that `embedded` made. */
export function dataElement(kind: 'report' | 'group' | 'plot') {
  return { before: `<script type="application/json" data-kind="${kind}">`, after: '</script>\n' };
}

/** JSON for the inside of a `<script>` element. A parser reads the same value, except for masked passwords. */
export function embedded(value: object): string {
  return jsonText(value).replaceAll(
    /[<>&]/g,
    (character) => String.raw`\u00${character.charCodeAt(0).toString(16)}`,
  );
}

/** The source of an inline script or style in a Content-Security-Policy. */
export const hashSource = (content: string): string =>
  `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
