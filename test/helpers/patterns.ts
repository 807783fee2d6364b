/** The regular expressions in src, and texts that make one of them slow if it can be. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

export interface SourcePattern {
  /** File and line. */
  readonly place: string;
  readonly pattern: RegExp;
}

/** All literals below a folder. */
export function patternsIn(folder: string): SourcePattern[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return files.sort().flatMap((file) => {
    const source = ts.createSourceFile(
      file,
      readFileSync(join(folder, file), 'utf8'),
      ts.ScriptTarget.Latest,
      true,
    );
    const found: SourcePattern[] = [];
    const visit = (node: ts.Node): void => {
      if (node.kind === ts.SyntaxKind.RegularExpressionLiteral) {
        const text = node.getText(source);
        const end = text.lastIndexOf('/');
        const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
        found.push({
          place: `${file}:${line}`,
          pattern: new RegExp(text.slice(1, end), text.slice(end + 1)),
        });
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return found;
  });
}

/** Characters that an atom of an expression may match. */
const POOL = 'a0A1 \t-_./\\:=@"\'<>,;é\u0000\n';

/** Longer repetitions with a lower bound are cut, because their texts differ in length only. */
const MOST_COPIES = 64;

/**
 * Texts of about `bytes` characters: each beginning of a text that the expression matches, again and again, and each of its
 * characters, again and again, with and without what comes before. The end fits no expression.
 */
export function* attacksOn({ source, flags }: RegExp, bytes: number): Generator<string> {
  const seen = new Set<string>();
  for (let spelling = 0; spelling < 4; spelling += 1) {
    const atoms = new Spelling(source, flags, spelling).atoms();
    let before = '';
    for (const [at, samples] of atoms.entries()) {
      const first = samples[0] ?? '';
      // A copy of the atom before it gives the same texts.
      if (samples === atoms[at - 1]) {
        before += first;
        continue;
      }
      const repeated = [
        ...samples.flatMap((sample) => [
          ['\u0000', sample],
          [before, sample],
        ]),
        ['', before + first + (flags.includes('m') ? '\n' : '')],
      ];
      for (const [start = '', pump = ''] of repeated) {
        const id = `${start}\n${pump}`;
        if (pump === '' || seen.has(id)) continue;
        seen.add(id);
        yield `${start}${pump.repeat(Math.ceil(bytes / pump.length))}\n\u0000`;
      }
      before += first;
    }
  }
}

/** Reads an expression as a list of atoms, each with characters that it matches. In each group it takes one alternative. */
class Spelling {
  readonly #source: string;
  readonly #flags: string;
  readonly #choice: number;
  #at = 0;

  constructor(source: string, flags: string, choice: number) {
    this.#source = source;
    this.#flags = flags.replaceAll(/[gy]/g, '');
    this.#choice = choice;
  }

  atoms(): string[][] {
    const alternatives: string[][][] = [[]];
    while (this.#at < this.#source.length && this.#source[this.#at] !== ')') {
      if (this.#take('|')) alternatives.push([]);
      else alternatives.at(-1)?.push(...this.#repeated(this.#item()));
    }
    return alternatives[Math.min(this.#choice, alternatives.length - 1)] ?? [];
  }

  #item(): string[][] {
    if (this.#take('(')) {
      const isNegative = /^\?<?!/.test(this.#source.slice(this.#at));
      this.#at += /^(?:\?(?:[:=!]|<[=!]|<\w+>))?/.exec(this.#source.slice(this.#at))?.[0].length ?? 0;
      const inner = this.atoms();
      this.#take(')');
      return isNegative ? [] : inner;
    }
    const [atom = ''] =
      /^(?:\[\^?(?:\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[\da-f]{4}|\\x[\da-f]{2}|\\?.)/isu.exec(
        this.#source.slice(this.#at),
      ) ?? [];
    this.#at += atom.length;
    if (['^', '$', String.raw`\b`, String.raw`\B`].includes(atom)) return [];
    const one = new RegExp(`^(?:${atom})$`, this.#flags);
    const own = [atom.at(-1) ?? '', ...Array.from(POOL)].filter((character) => one.test(character));
    return [[...new Set(own)].slice(0, 4)];
  }

  #repeated(atoms: string[][]): string[][] {
    const [quantifier = '', least = '1'] =
      /^(?:\{(\d+)(?:,\d*)?\}|[*+?])\??/.exec(this.#source.slice(this.#at)) ?? [];
    this.#at += quantifier.length;
    return Array.from({ length: Math.min(MOST_COPIES, Math.max(1, Number(least))) }, () => atoms).flat();
  }

  #take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }
}
