/**
 * A recording of a terminal as an animated SVG. Each state of a row is an element that is visible as long as the row has that
 * state. A renderer without animation shows the last screen. The picture has its own background, so it reads the same on a light and a dark page.
 */

/**
 * Text of one style, without two spaces in a row.
 * @typedef {object} Piece
 * @property {number} x column
 * @property {string} text
 * @property {number | undefined} color of the terminal's palette
 * @property {boolean} isBold
 */

/**
 * The screen from this time on.
 * @typedef {{ atMs: number, rows: readonly (readonly Piece[])[] }} Frame
 */

const CELL = { width: 8.4, height: 18 };
const MARGIN = { side: 16, top: 36, bottom: 14 };
/** The first sixteen colors of the palette, chosen for the dark background. */
const PALETTE = [
  '#484f58 #ff7b72 #3fb950 #d29922 #58a6ff #bc8cff #39c5cf #c9d1d9',
  '#6e7681 #ffa198 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd #f0f6fc',
]
  .join(' ')
  .split(' ');
const STYLE = `
text { fill: #c9d1d9; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
.bold { font-weight: 700 }
.past { visibility: hidden }
@keyframes on { from, to { visibility: visible } }
@keyframes off { from, to { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { g { animation: none !important } }
`;

/**
 * @param {readonly Frame[]} frames in the order of time
 * @param {{ cols: number, rows: number }} size of the terminal
 */
export function recordingSvg(frames, size) {
  const width = Math.ceil(size.cols * CELL.width + 2 * MARGIN.side);
  const height = size.rows * CELL.height + MARGIN.top + MARGIN.bottom;
  const rows = Array.from({ length: size.rows }, (_, y) => rowVersions(frames, y)).flat();
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>A recording of cryptodl in a terminal</title>
<style>${STYLE}</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117" stroke="#30363d"/>
<circle cx="20" cy="18" r="6" fill="#ff5f56"/><circle cx="40" cy="18" r="6" fill="#ffbd2e"/><circle cx="60" cy="18" r="6" fill="#27c93f"/>
${rows.join('\n')}
</svg>
`;
}

/**
 * One element for each state that the row has had.
 * @param {readonly Frame[]} frames
 * @param {number} y
 */
function rowVersions(frames, y) {
  /** @type {{ fromMs: number, content: string }[]} */
  const versions = [];
  for (const { atMs, rows } of frames) {
    const content = (rows[y] ?? []).map((piece) => pieceText(piece, y)).join('');
    if (content !== versions.at(-1)?.content) versions.push({ fromMs: atMs, content });
  }
  return versions.flatMap(({ fromMs, content }, index) => {
    if (content === '') return [];
    const untilMs = versions[index + 1]?.fromMs;
    const timing =
      untilMs === undefined
        ? `style="animation:off ${seconds(fromMs)}"`
        : `class="past" style="animation:on ${seconds(untilMs - fromMs)} ${seconds(fromMs)}"`;
    return [`<g ${timing}>${content}</g>`];
  });
}

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(2)}s`;
}

/**
 * `textLength` keeps the columns in line with every font.
 * @param {Piece} piece
 * @param {number} y
 */
function pieceText({ x, text, color, isBold }, y) {
  const place = `x="${round(MARGIN.side + x * CELL.width)}" y="${MARGIN.top + y * CELL.height + 14}"`;
  const length = `textLength="${round(text.length * CELL.width)}" lengthAdjust="spacingAndGlyphs"`;
  const fill = color === undefined ? '' : ` style="fill:${PALETTE[color] ?? '#c9d1d9'}"`;
  return `<text ${place} ${length}${isBold ? ' class="bold"' : ''}${fill}>${escaped(text)}</text>`;
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 10) / 10;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
