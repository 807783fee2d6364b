// Writes documents from the program's own tables: docs/datasets.md, docs/flags.md, docs/faults.md.

/**
 * What `describeDataset` gives.
 * @typedef {object} Description
 * @property {string} market
 * @property {string} dataset
 * @property {string} title
 * @property {readonly { name: string, type: string, unit: string, doc: string }[]} columns
 * @property {readonly (readonly [string, string])[]} facts
 * @property {readonly string[]} notes
 */

/**
 * @typedef {object} Flag
 * @property {string} name
 * @property {string} [short]
 * @property {string} group
 * @property {readonly string[]} verbs
 * @property {string} doc
 * @property {Readonly<Record<string, string>>} [docOf] Where a verb has another one.
 * @property {string} environment
 * @property {string | undefined} value
 * @property {string | undefined} preset
 * @property {string} [unset]
 * @property {Readonly<Record<string, string>>} [unsetOf] Where a verb has another one.
 * @property {Readonly<Record<string, string>>} [defaultOf] Where a verb has another one.
 */

/**
 * The rows of the flag table with the verbs that have each flag, and their own texts for it.
 * @param {readonly string[]} names
 * @param {{ flagSpec: (name: any) => any, environmentName: (name: any) => string, verbs: readonly any[] }} tables
 * @returns {Flag[]}
 */
export function flagRows(names, { flagSpec, environmentName, verbs }) {
  return names.map((name) => {
    const { default: preset, ...spec } = flagSpec(name);
    const own = verbs.filter(({ flags, moreFlags = [] }) => [...flags, ...moreFlags].includes(name));
    /** @param {string} field */
    const textsOf = (field) =>
      Object.fromEntries(
        own.flatMap((verb) => {
          const text = verb.meanings?.[name]?.[field];
          return text === undefined ? [] : [[verb.name, text]];
        }),
      );
    return {
      name,
      environment: environmentName(name),
      value: undefined,
      preset,
      ...spec,
      verbs: own.map((verb) => verb.name),
      docOf: textsOf('doc'),
      unsetOf: textsOf('unset'),
      defaultOf: textsOf('default'),
    };
  });
}

const MADE = '<!-- npm run docs writes this file; a test compares it with the tables of the program. -->';

/** @param {string} text */
function cell(text) {
  return text.replaceAll('|', '\\|');
}

/**
 * Text in which Markdown changes nothing.
 * @param {string} text
 */
export function plain(text) {
  return text.replaceAll(/[\\*_<>`[\]]/g, (character) => `\\${character}`);
}

/** @param {readonly string[]} cells */
function line(cells) {
  return `| ${cells.map(cell).join(' | ')} |`;
}

/**
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
function table(head, rows) {
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/**
 * @param {readonly Description[]} all
 * @param {string} dataset
 * @param {string} market
 */
function availability(all, dataset, market) {
  const found = all.find((one) => one.dataset === dataset && one.market === market);
  if (found === undefined) return '-';
  const facts = new Map(found.facts);
  const state = facts.get('state')?.split('; ')[0]?.replace(`${market} ${dataset} `, '');
  if (state?.startsWith('was removed') === true) return 'removed';
  const cadences = ['daily', 'monthly'].filter((name) => facts.get('objects')?.includes(name) === true);
  const archive = [
    ...cadences.map((name) => name.charAt(0).toUpperCase()),
    ...(state === undefined ? [] : [state]),
  ];
  const made = facts.get('made by') === undefined ? '' : 'cryptodl bars';
  return [archive.join(' '), facts.has('REST') ? 'REST' : '', made].filter((part) => part !== '').join(', ');
}

/** @param {readonly Description[]} all */
function matrix(all) {
  const markets = [...new Set(all.map(({ market }) => market))];
  const datasets = [...new Set(all.map(({ dataset }) => dataset))];
  const rows = datasets.map((dataset) => [
    `\`${dataset}\``,
    ...markets.map((market) => availability(all, dataset, market)),
    all.find((one) => one.dataset === dataset)?.title ?? '',
  ]);
  return table(['dataset', ...markets, 'content'], rows);
}

/**
 * docs/datasets.md.
 * @param {readonly Description[]} all
 */
export function datasetsDocument(all) {
  const sections = all.map(({ market, dataset, title, columns, facts, notes }) => {
    const rows = columns.map(({ name, type, unit, doc }) => [`\`${name}\``, type, plain(unit), plain(doc)]);
    return [
      `## ${market} ${dataset}`,
      `${title.charAt(0).toUpperCase()}${title.slice(1)}.`,
      table(['column', 'type', 'unit', 'meaning'], rows),
      facts.map(([what, text]) => `- ${what}: ${plain(text)}`).join('\n'),
      ...(notes.length === 0 ? [] : [notes.map((note) => `- ${plain(note)}`).join('\n')]),
    ].join('\n\n');
  });
  const intro =
    'This document lists the datasets of the archive (D: daily objects, M: monthly objects) and of REST, with the columns that the program writes. ' +
    '`cryptodl schema DATASET --market MARKET` prints the same. Types are those of Parquet; numbers are text with `--numbers string`, and always in CSV.';
  return `${['# Datasets', MADE, intro, matrix(all), ...sections].join('\n\n')}\n`;
}

/**
 * @param {string | undefined} preset
 * @param {Readonly<Record<string, string>>} [defaultOf]
 */
function presets(preset, defaultOf = {}) {
  const own = Object.entries(defaultOf).map(([verb, text]) => `${verb}: \`${text.replaceAll(',', ', ')}\``);
  return [...(preset === undefined ? [] : [`\`${preset}\``]), ...own].join('; ');
}

/**
 * The text about a flag for all verbs, then its texts for single verbs.
 * @param {string} shared
 * @param {Readonly<Record<string, string>>} [ofVerbs]
 */
function texts(shared, ofVerbs = {}) {
  const own = [...new Set(Object.values(ofVerbs))].map((text) => {
    const verbs = Object.keys(ofVerbs).filter((verb) => ofVerbs[verb] === text);
    return `<br>${verbs.join(', ')}: ${plain(text)}`;
  });
  return [plain(shared), ...own].join('');
}

/**
 * docs/flags.md.
 * @param {readonly Flag[]} flags
 */
export function flagsDocument(flags) {
  const groups = [...new Set(flags.map(({ group }) => group))];
  const sections = groups.map((group) => {
    const rows = flags
      .filter((flag) => flag.group === group)
      .map(({ name, short, value, preset, unset, unsetOf, defaultOf, doc, docOf, environment, verbs }) => [
        `\`${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}\``,
        texts(doc, docOf),
        unset === undefined ? presets(preset, defaultOf) : texts(unset, unsetOf),
        `\`${environment}\``,
        verbs.join(', '),
      ]);
    return `## ${group}\n\n${table(['flag', 'meaning', 'default', 'environment', 'commands'], rows)}`;
  });
  const intro =
    'Flags have precedence over environment variables, these over the keys in `--config FILE`, and these over the defaults. ' +
    '`--print-options` shows each value and its origin.';
  return `${['# Flags', MADE, intro, ...sections].join('\n\n')}\n`;
}

const FAULTS = /^([NDL])(\d+)(?: [NDL]\d+)* (.*) → (.*); exit (\d+)/;
const FAULT_GROUPS = { N: 'The network and HTTP', D: 'Data', L: 'The local machine' };

/**
 * docs/faults.md, from the titles of the tests in test/faults.
 * @param {readonly string[]} titles
 */
export function faultsDocument(titles) {
  const rows = titles.flatMap((title) => {
    const [, group = '', number = '', fault = '', outcome = '', exit = ''] = FAULTS.exec(title) ?? [];
    return group === '' ? [] : [{ group, number: Number(number), fault, outcome, exit }];
  });
  rows.sort((a, b) => a.number - b.number || a.fault.localeCompare(b.fault, 'en'));
  const sections = Object.entries(FAULT_GROUPS).map(([group, name]) => {
    const cells = rows
      .filter((row) => row.group === group)
      .map(({ number, fault, outcome, exit }) => [`${group}${number}`, plain(fault), plain(outcome), exit]);
    return `## ${name}\n\n${table(['id', 'fault', 'result', 'exit code'], cells)}`;
  });
  const intro =
    'Each line is a test of test/faults with the real program. The fault concerns one object of ten, or the host, or the machine; the ' +
    'other objects arrive intact. The run has the default options, except for shorter waits.';
  return `${['# Faults', MADE, intro, ...sections].join('\n\n')}\n`;
}
