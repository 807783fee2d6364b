/** Reads the documents of S3. A damaged document must not count as a shorter one. */
import { isUtf8 } from 'node:buffer';
import { SaxesParser } from 'saxes';
import { CryptodlError } from '../model/errors.js';
import { isLabel } from '../text/json.js';

export interface XmlElement {
  readonly name: string;
  readonly children: XmlElement[];
  /** Text directly in the element. */
  text: string;
}

/** Parts of XML that S3 does not write. A damaged tag could hide its object in them. */
const STRANGE = ['comment', 'cdata', 'doctype', 'processinginstruction'] as const;

/** The root element; undefined for an empty document. Throws for a document that is not complete and well-formed XML. */
function readXml(document: string): XmlElement | undefined {
  const outside: XmlElement = { name: '', children: [], text: '' };
  const open = [outside];
  const parser = new SaxesParser();
  // Without a prototype, whose properties are no entities.
  parser.ENTITIES = Object.assign(Object.create(null), { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" });
  parser.on('opentag', ({ name }) => {
    const element: XmlElement = { name, children: [], text: '' };
    open.at(-1)?.children.push(element);
    open.push(element);
  });
  parser.on('closetag', () => open.pop());
  parser.on('text', (text) => {
    (open.at(-1) ?? outside).text += text;
  });
  for (const kind of STRANGE)
    parser.on(kind, () => {
      throw new SyntaxError(`it has a ${kind}`);
    });
  parser.write(document).close();
  return outside.children[0];
}

/**
 * The root of a document in UTF-8. Throws `listing-malformed` for anything but a complete document of this name. Blanks may stand before
 * the document: S3 sends them while it puts parts together.
 */
export function rootOf(body: Buffer, name: string): XmlElement {
  let root: XmlElement | undefined;
  let problem = '';
  try {
    if (isUtf8(body)) root = readXml(body.toString('utf8').trimStart());
    else problem = '; it is not UTF-8';
  } catch (error) {
    problem = `: ${(error as Error).message}`;
  }
  if (root?.name === name) return root;
  const head = body.subarray(0, 2000).toString('utf8').replaceAll(/\s+/g, ' ').slice(0, 80);
  throw malformed(`not a ${name}: ${JSON.stringify(head)}${problem}`);
}

/** The children with this name. Throws for text between children, because it can be the rest of a damaged tag. */
export function childrenOf(parent: XmlElement, name: string): XmlElement[] {
  checkChildren(parent);
  return parent.children.filter((child) => child.name === name);
}

function checkChildren({ name, text }: XmlElement): void {
  if (text !== '' && text.trim() !== '') throw malformed(`text in <${name}>: ${text.trim().slice(0, 80)}`);
}

/** The text of the child with this name; undefined if there is none. Throws if there are two. */
export function textIn(parent: XmlElement, name: string): string | undefined {
  checkChildren(parent);
  let found: XmlElement | undefined;
  for (const child of parent.children) {
    if (child.name !== name) continue;
    if (found !== undefined) throw malformed(`<${parent.name}> has <${name}> twice`);
    found = child;
  }
  if (found !== undefined && found.children.length > 0) throw malformed(`<${found.name}> is not a text`);
  return found?.text;
}

export function neededIn(parent: XmlElement, name: string): string {
  const text = textIn(parent, name) ?? '';
  if (text === '') throw malformed(`<${parent.name}> has no ${name}`);
  return text;
}

/** A text that a manifest may keep, by default empty. Throws for control characters, and above 256 characters. */
export function labelIn(parent: XmlElement, name: string): string {
  const text = textIn(parent, name) ?? '';
  if (isLabel(text)) return text;
  throw malformed(`the ${name} in <${parent.name}> is longer than 256 characters or has control characters`);
}

export const malformed = (message: string): CryptodlError => new CryptodlError('listing-malformed', message);
