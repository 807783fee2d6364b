/** Flags of single verbs that read the lake: report, plot and bars. */
import type { FlagRows } from './flag-spec.js';
import * as parse from './parsers.js';

export const PICTURE_FLAGS = {
  run: {
    group: 'What',
    verbs: ['report'],
    usual: ['report'],
    value: 'ID',
    doc: 'run whose figures and failures are shown: last, or the name of a file in OUT/.cryptodl/runs without .json',
    parse: parse.text,
    default: 'last',
    aka: ['run-id', 'id'],
  },
  column: {
    group: 'What',
    verbs: ['plot'],
    usual: ['plot'],
    value: 'NAME',
    doc: 'draw this column as a line; without this flag, candles, or a column of a dataset without candles; cryptodl schema DATASET shows the columns',
    parse: parse.text,
    example: 'last_funding_rate',
    aka: ['field', 'value', 'y', 'columns'],
  },
  html: {
    group: 'Where',
    verbs: ['report', 'plot'],
    usual: ['report', 'plot'],
    value: 'FILE',
    doc: 'file of the report; an existing file is replaced only if it is a report',
    docOf: {
      plot: 'write a page with a zoomable chart instead; an existing file is replaced only if it is a plot',
    },
    parse: parse.text,
    unsetOf: { report: 'cryptodl-report.html' },
    example: 'chart.html',
    aka: ['file', 'to-file', 'report', 'output-file', 'page', 'save'],
  },
  svg: {
    group: 'Where',
    verbs: ['plot'],
    usual: ['plot'],
    value: 'FILE',
    doc: 'write a picture instead; an existing file is replaced only if it is a plot',
    parse: parse.text,
    example: 'chart.svg',
    aka: ['picture', 'image'],
  },
  'fill-empty': {
    group: 'How',
    verbs: ['bars'],
    usual: ['bars'],
    doc: 'also make bars of times without trades; their prices are the close before, their volumes are 0',
    parse: parse.flag,
    aka: ['fill', 'ffill'],
  },
  check: {
    group: 'Safety',
    verbs: ['bars'],
    usual: ['bars'],
    doc: 'compare the bars with the klines of the archive that the lake has, and write nothing; ends with exit code 4 if they differ',
    parse: parse.flag,
    aka: ['compare'],
  },
} as const satisfies FlagRows;
