// Makes the styles and scripts of the pages of `cryptodl report` and `cryptodl plot` from assets/ and uPlot, so that the program needs no
// chart library.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const uplot = dirname(fileURLToPath(import.meta.resolve('uplot/package.json')));

/** In this order: a file uses what the files before it declare. */
const PAGES = {
  report: {
    scripts: ['dom.js', 'charts.js', 'run.js', 'heat-map.js', 'coverage.js', 'main.js'].map(
      (name) => `report/${name}`,
    ),
    styles: ['report/page.css'],
  },
  plot: { scripts: ['report/dom.js', 'plot/plot.js'], styles: ['report/page.css', 'plot/page.css'] },
};

/** @param {string} path */
const own = (path) => readFileSync(new URL(`../assets/${path}`, import.meta.url), 'utf8');
/** @param {string} name */
const ofUplot = (name) => readFileSync(join(uplot, name), 'utf8').trim();

const licence = `/*! uPlot\n${ofUplot('LICENSE')}\n*/`;
for (const [name, { scripts, styles }] of Object.entries(PAGES)) {
  const target = new URL(`../dist/${name}-page/`, import.meta.url);
  mkdirSync(target, { recursive: true });
  const body = scripts.map(own).join('\n');
  const page = `${licence}\n${ofUplot('dist/uPlot.iife.min.js')}\n(() => {\n'use strict';\n${body}})();\n`;
  // An element of a page ends at its first closing tag, also within a text of the script.
  if (/<\/(?:script|style)|<!--/i.test(page)) throw new Error(`the script of ${name} has markup`);
  writeFileSync(new URL('page.js', target), page);
  writeFileSync(
    new URL('page.css', target),
    `${ofUplot('dist/uPlot.min.css')}\n${styles.map(own).join('\n')}`,
  );
}
