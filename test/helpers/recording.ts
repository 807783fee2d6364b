/** The picture that scripts/record.js makes, as data. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';

export interface Recording {
  /** The rows of the last screen. */
  readonly lines: readonly string[];
  /** Texts that are replaced before the end. */
  readonly past: readonly string[];
}

type Element = Readonly<Record<string, unknown>>;

/** Throws for XML that is not well-formed. */
export function readRecording(svg: string): Recording {
  const checked = XMLValidator.validate(svg);
  if (checked !== true) throw new Error(checked.err.msg);
  const parser = new XMLParser({
    ignoreAttributes: false,
    trimValues: false,
    parseTagValue: false,
    isArray: (name) => name === 'g' || name === 'text',
  });
  const { svg: root } = parser.parse(svg) as { svg: { g: readonly Element[] } };
  const past: string[] = [];
  const rows = new Map<number, string[]>();
  for (const group of root.g) {
    for (const piece of group['text'] as readonly Element[]) {
      const text = String(piece['#text']);
      const y = Number(piece['@_y']);
      if (group['@_class'] === 'past') past.push(text);
      else rows.set(y, [...(rows.get(y) ?? []), text]);
    }
  }
  const lines = [...rows].sort(([above], [below]) => above - below).map(([, texts]) => texts.join('  '));
  return { lines, past };
}

/** Sizes and speeds that differ from run to run are left out. */
export function withoutMeasures(line: string): string {
  return line
    .replaceAll(/\b[\d.]+ ?(?:ms|s|B|kB|MB)(?:\/s)?(?!\w)/g, '#')
    .replaceAll(/\d+ requests/g, '# requests');
}
