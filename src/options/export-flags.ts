/** Flags of the verbs that write data of the lake for other programs. */
import type { FlagRows } from './flag-spec.js';
import * as parse from './parsers.js';

export const EXPORT_FLAGS = {
  target: {
    group: 'Where',
    verbs: ['universe'],
    usual: ['universe'],
    value: 'DIR',
    doc: 'folder of the written files',
    docOf: {
      universe: 'the file of --as parquet, or the folder of the files of --as freqtrade',
    },
    parse: parse.text,
    example: './universe',
    aka: ['target-dir', 'destination', 'dest'],
  },
} as const satisfies FlagRows;
