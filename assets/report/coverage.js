// The section about the coverage of the lake: one group of series at a time.

/** @param {Group[]} groups */
function coverageSection(groups) {
  const place = el('div');
  const show = (/** @type {number} */ at) => {
    const group = groups[at];
    if (group !== undefined) place.replaceChildren(...groupContents(group));
  };
  const first = firstLacking(groups);
  show(first);
  const rows = groups.flatMap((group) => group.rows);
  const lacking = rows.filter(({ m }) => m > 0).length;
  return section(
    'coverage',
    'Coverage',
    el(
      'p',
      {},
      lacking === 0
        ? `Nothing is missing in ${numberText(rows.length)} series.`
        : `${numberText(lacking)} of ${numberText(rows.length)} series lack data.`,
    ),
    groups.length > 1
      ? choiceField(
          'Series ',
          groups.map(({ name, rows: { length } }) => `${name} (${numberText(length)})`),
          show,
          first,
        )
      : '',
    place,
  );
}

/** The first group with gaps; 0 if none has any.
 * @param {readonly { readonly rows: readonly { readonly m: number }[] }[]} groups
 */
function firstLacking(groups) {
  return Math.max(
    0,
    groups.findIndex(({ rows }) => rows.some(({ m }) => m > 0)),
  );
}

/** @param {Group} group */
function groupContents(group) {
  const map = heatMap(group);
  const byName = group.rows;
  const share = new Map(byName.map((row) => [row, row.e === 0 ? 1 : 1 - row.m / row.e]));
  const worst = byName.toSorted((a, b) => (share.get(a) ?? 1) - (share.get(b) ?? 1));
  let order = byName;
  let text = '';
  let chosen = byName;
  const list = folded(`Series of ${group.name}`, () => seriesTable(group, chosen));
  const update = () => {
    chosen = text === '' ? order : order.filter(({ s }) => s.toLowerCase().includes(text));
    map.show(chosen);
    list.open = false;
    list.replaceChildren(...[...list.children].slice(0, 1));
  };
  return [
    el(
      'div',
      { class: 'tools' },
      filterField('Symbol ', (given) => {
        text = given;
        update();
      }),
      choiceField('Order ', ['by name', 'least complete first'], (at) => {
        order = at === 0 ? byName : worst;
        update();
      }),
      map.buttons,
    ),
    map.element,
    legend(),
    list,
    gapTable(group),
  ];
}

function legend() {
  const items = LEVELS.map(({ name, text }) =>
    el('li', {}, el('span', { class: `swatch ${name}`, 'aria-hidden': 'true' }), text),
  );
  return el('ul', { class: 'legend', 'aria-label': 'Colours of the heat-map' }, ...items);
}

/**
 * @param {Group} group
 * @param {SeriesRow[]} rows
 */
function seriesTable({ name, unit }, rows) {
  return table(
    `Series of ${name}`,
    [
      { title: 'symbol', of: ({ s }) => s },
      { title: 'percent', isNumber: true, of: ({ p }) => p },
      { title: `missing ${unit}`, isNumber: true, of: ({ m }) => m },
      { title: `expected ${unit}`, isNumber: true, of: ({ e }) => e },
      { title: 'first', of: ({ f }) => timeText(f) },
      { title: 'last', of: ({ l }) => timeText(l) },
      { title: 'objects', isNumber: true, of: ({ o }) => o },
      { title: 'revisions', isNumber: true, of: ({ v }) => v },
    ],
    rows,
  );
}

/** @param {Group} group */
function gapTable({ name, gaps, moreGaps }) {
  if (gaps.length === 0) return note(`${name} has no gap.`);
  const drawn = table(
    `Gaps of ${name}, worst first`,
    [
      { title: 'time', of: ({ span }) => span },
      { title: 'symbols', of: ({ symbols }) => symbols },
      { title: 'reason', of: ({ reason }) => reason },
      { title: 'missing', isNumber: true, of: ({ missing }) => missing },
    ],
    gaps,
  );
  return moreGaps === 0
    ? drawn
    : el('div', {}, drawn, note(`${numberText(moreGaps)} more gaps: cryptodl coverage --all shows them.`));
}
