// Makes the style and the script of `cryptodl report` from assets/report and uPlot, so that the program needs no chart library.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const uplot = dirname(fileURLToPath(import.meta.resolve('uplot/package.json')));
const target = new URL('../dist/report-page/', import.meta.url);

/** In this order: a file uses what the files before it declare. */
const SCRIPTS = ['dom.js', 'charts.js', 'run.js', 'heat-map.js', 'coverage.js', 'main.js'];

/** @param {string} name */
const own = (name) => readFileSync(new URL(`../assets/report/${name}`, import.meta.url), 'utf8');
/** @param {string} name */
const ofUplot = (name) => readFileSync(join(uplot, name), 'utf8').trim();

mkdirSync(target, { recursive: true });
const licence = `/*! uPlot\n${ofUplot('LICENSE')}\n*/`;
const scripts = SCRIPTS.map(own).join('\n');
const page = `${licence}\n${ofUplot('dist/uPlot.iife.min.js')}\n(() => {\n'use strict';\n${scripts}})();\n`;
// An element of a page ends at its first closing tag, also within a text of the script.
if (/<\/(?:script|style)|<!--/i.test(page)) throw new Error('the script of the page has markup');
writeFileSync(new URL('page.js', target), page);
writeFileSync(new URL('page.css', target), `${ofUplot('dist/uPlot.min.css')}\n${own('page.css')}`);
