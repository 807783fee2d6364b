// Reads the data of the page and puts its sections together.

/** @param {string} kind */
function dataOf(kind) {
  return [...document.querySelectorAll(`script[data-kind="${kind}"]`)].map((element) =>
    JSON.parse(element.textContent ?? ''),
  );
}

const THEMES = ['light', 'dark'];
const DARK = matchMedia('(prefers-color-scheme: dark)');

function themeButton() {
  const root = document.documentElement;
  const current = () => root.dataset['theme'] ?? (DARK.matches ? 'dark' : 'light');
  const button = el('button', { type: 'button' });
  const label = () => (button.textContent = current() === 'dark' ? 'Light theme' : 'Dark theme');
  const redraw = () => {
    label();
    for (const each of redraws) each();
  };
  button.addEventListener('click', () => {
    root.dataset['theme'] = THEMES[current() === 'dark' ? 0 : 1];
    redraw();
  });
  DARK.addEventListener('change', redraw);
  label();
  return button;
}

/** @param {Report} report */
function pageHeader({ verdict, lake, made, version }) {
  const verdictText =
    verdict === null ? 'The lake has no order: nothing tells what it should hold.' : verdict.text;
  return el(
    'header',
    {},
    el(
      'div',
      {},
      el('h1', {}, 'cryptodl report'),
      el('p', { class: 'verdict' }, verdictText),
      ...(verdict?.next ? [el('p', {}, 'Next: ', el('code', {}, verdict.next))] : []),
      el('p', {}, el('code', {}, lake), ` ${timeText(made)} UTC, cryptodl ${version}`),
    ),
    themeButton(),
  );
}

/** @param {Report} report */
function noteSection({ notes, moreNotes }) {
  const items = notes.map((text) => el('li', {}, text));
  if (moreNotes > 0) items.push(el('li', {}, `and ${numberText(moreNotes)} more`));
  return section('notes', 'Not read', el('ul', {}, ...items));
}

function start() {
  const report = /** @type {Report} */ (dataOf('report')[0]);
  const groups = /** @type {Group[]} */ (dataOf('group'));
  const { run, history, notes } = report;
  const sections = [
    ...(notes.length > 0 ? [noteSection(report)] : []),
    ...(run === null
      ? [section('run', 'Run', note('The lake has no record of a run: the next download leaves one.'))]
      : [runSection(run), courseSection(run), networkSection(run), failureSection(report)]),
    ...(history.length > 0 ? [historySection(history)] : []),
    groups.length > 0
      ? coverageSection(groups)
      : section('coverage', 'Coverage', note('The lake holds no data.')),
    ...(report.publication.length > 0 ? [publicationSection(report)] : []),
    revisionSection(history, groups),
  ];
  const links = sections.map((each) =>
    el(
      'li',
      {},
      el('a', { href: `#${each.id}` }, each.querySelector('h2')?.textContent?.split(':')[0] ?? ''),
    ),
  );
  document.body.append(
    pageHeader(report),
    el('nav', { 'aria-label': 'Sections' }, el('ul', {}, ...links)),
    el('main', {}, ...sections),
  );
}

start();
