/** The page around the data: markup, style and script, without any text from a lake. */
import { readFileSync } from 'node:fs';
import { hashSource } from './embed.js';

/** The beginning of each report. A file that begins so may be replaced. */
export const PAGE_START = '<!doctype html>\n<!-- cryptodl report -->\n';

/** `scripts/make-page.js` makes the assets from `assets/report` and uPlot. */
function asset(name: string): string {
  return readFileSync(new URL(`../../dist/report-page/${name}`, import.meta.url), 'utf8');
}

export interface Shell {
  readonly before: string;
  readonly after: string;
}

/** The elements of the data stand between `before` and `after`. The policy allows no request and no other script or style. */
export function pageShell(): Shell {
  const style = asset('page.css');
  const script = asset('page.js');
  const policy = [
    "default-src 'none'",
    `script-src ${hashSource(script)}`,
    `style-src ${hashSource(style)}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return {
    before: `${PAGE_START}<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>cryptodl report</title>
<style>${style}</style>
</head>
<body>
<noscript>This report draws its data with its own script. Allow scripts for this file.</noscript>
`,
    after: `<script>${script}</script>
</body>
</html>
`,
  };
}

/** One element with data. `content` is JSON that `embedded` made. */
export function dataElement(kind: 'report' | 'group'): Shell {
  return { before: `<script type="application/json" data-kind="${kind}">`, after: '</script>\n' };
}
