// Elements, texts and tables. All text of the data becomes text nodes or attributes, never markup.

/** @typedef {string | number | Node} Content */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string>} attributes
 * @param {readonly Content[]} contents
 * @returns {HTMLElementTagNameMap[Tag]}
 */
function el(tag, attributes = {}, ...contents) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...contents.map((content) => (typeof content === 'number' ? numberText(content) : content)));
  return element;
}

/** @param {number} number */
function numberText(number) {
  return number.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

/** @param {number} bytes */
function bytesText(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${bytes.toLocaleString('en-US', { maximumFractionDigits: bytes < 9.95 && unit > 0 ? 1 : 0 })} ${units[unit]}`;
}

/** @param {number} ms */
function durationText(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 72 ? `${hours} h ${minutes % 60} min` : `${Math.round(hours / 24)} days`;
}

/** @param {string | null} iso */
function timeText(iso) {
  return iso === null ? '–' : iso.slice(0, 16).replace('T', ' ');
}

/** @param {number} day since 1970-01-01 */
function dayText(day) {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}

/**
 * @param {number} share
 * @param {number} whole
 */
function percentText(share, whole) {
  return whole === 0
    ? '–'
    : `${((100 * share) / whole).toLocaleString('en-US', { maximumFractionDigits: 2 })} %`;
}

/**
 * @param {string} id
 * @param {string} title
 * @param {readonly Content[]} contents
 */
function section(id, title, ...contents) {
  const heading = el('h2', { id: `${id}-title` }, title);
  return el('section', { id, 'aria-labelledby': `${id}-title` }, heading, ...contents);
}

/** @param {string} text */
function note(text) {
  return el('p', { class: 'note' }, text);
}

/** A column of a table: `isNumber` aligns to the right.
 * @template Row
 * @typedef {{ title: string, of: (row: Row) => Content, isNumber?: boolean, isWide?: boolean }} Column
 */

/** A table has so many rows at most; a filter finds the others. */
const MOST_ROWS = 500;

/**
 * @template Row
 * @param {string} caption
 * @param {readonly Column<Row>[]} columns
 * @param {readonly Row[]} rows
 */
function table(caption, columns, rows) {
  const heads = columns.map(({ title, isNumber }) =>
    el('th', { scope: 'col', ...(isNumber ? { class: 'number' } : {}) }, title),
  );
  const lines = rows.slice(0, MOST_ROWS).map((row) => {
    const cells = columns.map(({ of, isNumber, isWide }, at) => {
      const attributes = isNumber ? { class: 'number' } : isWide ? { class: 'wide' } : undefined;
      return at === 0 ? el('th', { scope: 'row', ...attributes }, of(row)) : el('td', attributes, of(row));
    });
    return el('tr', {}, ...cells);
  });
  const drawn = el(
    'table',
    {},
    el('caption', {}, caption),
    el('thead', {}, el('tr', {}, ...heads)),
    el('tbody', {}, ...lines),
  );
  const box = el('div', { class: 'table', tabindex: '0', role: 'region', 'aria-label': caption }, drawn);
  const more = rows.length - lines.length;
  return more > 0 ? el('div', {}, box, note(`${numberText(more)} more rows: the filter finds them`)) : box;
}

/**
 * A table that is made when it is opened, because a page may have tens of thousands of rows.
 * @param {string} title
 * @param {() => HTMLElement} make
 */
function folded(title, make) {
  const details = el('details', {}, el('summary', {}, title));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}

/**
 * A field that calls back with its text in lower case.
 * @param {string} label
 * @param {(text: string) => void} act
 */
function filterField(label, act) {
  const input = el('input', { type: 'search', autocomplete: 'off', spellcheck: 'false' });
  input.addEventListener('input', () => act(input.value.trim().toLowerCase()));
  return el('label', { class: 'field' }, label, input);
}

/**
 * @param {string} label
 * @param {readonly string[]} choices
 * @param {(index: number) => void} act
 */
function choiceField(label, choices, act, chosen = 0) {
  const options = choices.map((choice, at) => el('option', { value: String(at) }, choice));
  const select = el('select', {}, ...options);
  select.value = String(chosen);
  select.addEventListener('change', () => act(Number(select.value)));
  return el('label', { class: 'field' }, label, select);
}
