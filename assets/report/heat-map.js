// The heat-map: a canvas as large as its window, drawn anew for each scroll position. A lake may have millions of days.

const ROW = 16;
const LABEL = 112;
const AXIS = 22;
/** Widths of a day in CSS pixels. */
const WIDTHS = [2, 3, 4, 6, 9, 14, 20];

/**
 * The levels of a day. Colour is not the only sign: each level has a height of its own, and a day without any data has a strip at the
 * top instead of a bar from the bottom.
 * @type {readonly { name: string; text: string; height: number; isAtTop?: boolean }[]}
 */
const LEVELS = [
  { name: 'none', text: 'no data expected', height: 0.15 },
  { name: 'full', text: 'complete', height: 1 },
  { name: 'most', text: '95 % or more', height: 0.8 },
  { name: 'half', text: '50 % or more', height: 0.6 },
  { name: 'some', text: 'less', height: 0.4 },
  { name: 'gone', text: 'nothing', height: 0.3, isAtTop: true },
];

/** @param {number | null} percent */
function levelOf(percent) {
  if (percent === null) return 0;
  return percent === 100 ? 1 : percent >= 95 ? 2 : percent >= 50 ? 3 : percent > 0 ? 4 : 5;
}

/** @typedef {{ ends: Int32Array, states: Int32Array }} Runs `ends`: day numbers; `states`: indexes of the states of the group. */

/** @type {WeakMap<SeriesRow, Runs>} */
const knownRuns = new WeakMap();

/** @param {SeriesRow} row */
function runsOf(row) {
  const known = knownRuns.get(row);
  if (known !== undefined) return known;
  /** @type {number[]} */
  const ends = [];
  /** @type {number[]} */
  const states = [];
  let day = row.d;
  for (const [, state = '', count] of row.r.matchAll(/(\D)(\d*)/g)) {
    states.push(state.charCodeAt(0) - 65);
    ends.push((day += Number(count || '1')));
  }
  const runs = { ends: Int32Array.from(ends), states: Int32Array.from(states) };
  knownRuns.set(row, runs);
  return runs;
}

/**
 * The index of the run with this day; -1 before the first day, and the number of runs after the last.
 * @param {SeriesRow} row
 * @param {number} day
 */
function runAt(row, day) {
  if (day < row.d) return -1;
  const { ends } = runsOf(row);
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) <= day) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * @param {Group} group
 * @param {SeriesRow} row
 * @param {number} day
 */
function cellText({ states, unit }, row, day) {
  const state = states[runsOf(row).states[runAt(row, day)] ?? -1];
  const where = `${row.s}, ${dayText(day)}: `;
  if (state === undefined) return `${where}outside of the days of the series`;
  const [percent, reason] = state;
  const held =
    percent === null
      ? 'no data expected'
      : percent === 100
        ? 'complete'
        : percent === 0 && unit === 'days'
          ? 'missing'
          : `${percent} % of the ${unit}`;
  return where + held + (reason === null ? '' : `, ${reason}`);
}

/**
 * @param {Group} group
 */
function heatMap(group) {
  const first = group.rows.reduce((least, row) => Math.min(least, row.d), Infinity);
  const end = group.rows.reduce((most, row) => Math.max(most, runsOf(row).ends.at(-1) ?? row.d), -Infinity);
  const days = Math.max(0, end - first);
  let rows = group.rows;
  let width = 0;
  let focus = { row: 0, day: days - 1 };
  const canvas = el('canvas', { 'aria-hidden': 'true' });
  const tip = el('div', { class: 'tip', hidden: '', 'aria-hidden': 'true' });
  const spacer = el('div', { class: 'spacer' }, canvas);
  const line = el(
    'output',
    { class: 'cell', 'aria-live': 'polite' },
    'Move the pointer or the arrow keys over the heat-map.',
  );
  const view = el(
    'div',
    {
      class: 'heat',
      tabindex: '0',
      role: 'application',
      'aria-label': `Heat-map of ${group.name}: ${numberText(rows.length)} series, ${numberText(days)} days. The arrow keys move the cursor, Home and End go to the first and the last day, Page Up and Page Down move ten series.`,
    },
    spacer,
  );
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const roomWidth = () => Math.max(1, view.clientWidth - LABEL);
  let isWaiting = false;
  const later = () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
  const size = () => {
    if (view.clientWidth === 0) return;
    if (width === 0) {
      width = WIDTHS.findLast((each) => each * days <= roomWidth()) ?? WIDTHS[0] ?? 2;
      view.style.height = `${Math.min(AXIS + rows.length * ROW + 18, 480)}px`;
    }
    spacer.style.width = `${LABEL + days * width}px`;
    spacer.style.height = `${AXIS + rows.length * ROW}px`;
    draw();
  };
  const draw = () => {
    const ratio = window.devicePixelRatio;
    const [wide, high] = [view.clientWidth, view.clientHeight];
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour('--card');
    context.fillRect(0, 0, wide, high);
    const left = Math.floor(view.scrollLeft / width);
    const right = Math.min(days, Math.ceil((view.scrollLeft + wide - LABEL) / width));
    const top = Math.floor(view.scrollTop / ROW);
    const bottom = Math.min(rows.length, Math.ceil((view.scrollTop + high - AXIS) / ROW));
    const colours = LEVELS.map(({ name }) => colour(`--heat-${name}`));
    const x = (/** @type {number} */ day) => LABEL + day * width - view.scrollLeft;
    const y = (/** @type {number} */ row) => AXIS + row * ROW - view.scrollTop;
    context.save();
    context.beginPath();
    context.rect(LABEL, AXIS, wide - LABEL, high - AXIS);
    context.clip();
    for (let at = top; at < bottom; at += 1) {
      const row = rows[at];
      if (row === undefined) continue;
      const { ends, states } = runsOf(row);
      let from = Math.max(left, row.d - first);
      for (let run = Math.max(0, runAt(row, first + left)); run < ends.length && from < right; run += 1) {
        const to = Math.min(right, (ends[run] ?? 0) - first);
        const level = levelOf(group.states[states[run] ?? 0]?.[0] ?? null);
        const { height: share = 1, isAtTop = false } = LEVELS[level] ?? {};
        const height = share * (ROW - 3);
        const below = isAtTop ? ROW - 3 - height : 0;
        context.fillStyle = colours[level] ?? '';
        context.fillRect(x(from), y(at) + ROW - 1.5 - below - height, (to - from) * width, height);
        from = to;
      }
    }
    if (document.activeElement === view) {
      context.strokeStyle = colour('--focus');
      context.lineWidth = 2;
      context.strokeRect(x(focus.day) - 2, y(focus.row), Math.max(width, 4) + 4, ROW);
    }
    context.restore();
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = colour('--text');
    context.textBaseline = 'middle';
    context.save();
    context.beginPath();
    context.rect(0, AXIS, LABEL - 6, high);
    context.clip();
    for (let at = top; at < bottom; at += 1) context.fillText(rows[at]?.s ?? '', 4, y(at) + ROW / 2);
    context.restore();
    drawAxis(left, right, x);
  };
  const drawAxis = (
    /** @type {number} */ left,
    /** @type {number} */ right,
    /** @type {(day: number) => number} */ x,
  ) => {
    context.save();
    context.beginPath();
    context.rect(LABEL, 0, view.clientWidth - LABEL, AXIS);
    context.clip();
    context.fillStyle = colour('--muted');
    let free = -Infinity;
    for (let day = left; day < right; day += 1) {
      const text = dayText(first + day);
      const isFirst = day === left;
      if (!isFirst && !text.endsWith('-01')) continue;
      const at = Math.max(LABEL, x(day));
      const label = isFirst ? text : text.slice(0, 7);
      if (at < free) continue;
      context.fillRect(at, AXIS - 5, 1, 5);
      context.fillText(label, at + 3, AXIS / 2 - 1);
      free = at + context.measureText(label).width + 14;
    }
    context.restore();
  };
  /** Puts the cursor on a cell and scrolls to it. */
  const move = (/** @type {number} */ row, /** @type {number} */ day) => {
    focus = { row: clamp(row, rows.length), day: clamp(day, days) };
    const seen = rows[focus.row];
    if (seen === undefined) return;
    view.scrollLeft = clampScroll(view.scrollLeft, focus.day * width, width, roomWidth());
    view.scrollTop = clampScroll(view.scrollTop, focus.row * ROW, ROW, view.clientHeight - AXIS);
    line.textContent = cellText(group, seen, first + focus.day);
    later();
  };
  view.addEventListener('keydown', (event) => {
    const { row, day } = focus;
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowLeft: [row, day - 1],
      ArrowRight: [row, day + 1],
      ArrowUp: [row - 1, day],
      ArrowDown: [row + 1, day],
      Home: [row, 0],
      End: [row, days - 1],
      PageUp: [row - 10, day],
      PageDown: [row + 10, day],
    };
    const target = moves[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(...target);
  });
  view.addEventListener('pointermove', (event) => {
    const box = view.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const row = rows[Math.floor((py - AXIS + view.scrollTop) / ROW)];
    const day = Math.floor((px - LABEL + view.scrollLeft) / width);
    tip.hidden = row === undefined || px < LABEL || py < AXIS || day < 0 || day >= days;
    if (row === undefined || tip.hidden) return;
    tip.textContent = cellText(group, row, first + day);
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(4, Math.min(room, event.clientX + 12))}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  view.addEventListener('pointerleave', () => (tip.hidden = true));
  view.addEventListener('click', (event) => {
    const box = view.getBoundingClientRect();
    const day = Math.floor((event.clientX - box.left - LABEL + view.scrollLeft) / width);
    move(Math.floor((event.clientY - box.top - AXIS + view.scrollTop) / ROW), day);
  });
  view.addEventListener('scroll', later);
  view.addEventListener('focus', () => move(focus.row, focus.day));
  view.addEventListener('blur', later);
  redraws.push(() => {
    if (width > 0) draw();
  });
  let wasShown = false;
  new ResizeObserver(() => {
    size();
    if (wasShown || width === 0) return;
    wasShown = true;
    view.scrollLeft = days * width;
  }).observe(view);
  const zoom = (/** @type {number} */ step) => {
    const middle = (view.scrollLeft + roomWidth() / 2) / width;
    width = WIDTHS[clamp(WIDTHS.indexOf(width) + step, WIDTHS.length)] ?? width;
    size();
    view.scrollLeft = middle * width - roomWidth() / 2;
    draw();
  };
  const wider = el('button', { type: 'button', 'aria-label': 'wider days' }, '+');
  const narrower = el('button', { type: 'button', 'aria-label': 'narrower days' }, '−');
  wider.addEventListener('click', () => zoom(1));
  narrower.addEventListener('click', () => zoom(-1));
  return {
    element: el('div', {}, view, line, tip),
    buttons: el('span', { class: 'buttons' }, narrower, wider),
    show: (/** @type {SeriesRow[]} */ chosen) => {
      rows = chosen;
      focus = { ...focus, row: clamp(focus.row, rows.length) };
      size();
    },
  };
}

/**
 * @param {number} value
 * @param {number} length
 */
function clamp(value, length) {
  return Math.max(0, Math.min(length - 1, value));
}

/**
 * The scroll position nearest to the present one that shows a cell.
 * @param {number} scroll
 * @param {number} start
 * @param {number} length
 * @param {number} room
 */
function clampScroll(scroll, start, length, room) {
  return Math.max(0, Math.min(start, Math.max(scroll, start + length - room)));
}
