/**
 * A strict reader for XML as S3 writes it: declaration, elements, attributes, text, the five predefined entities and numeric
 * entities. It refuses incomplete and unbalanced documents and all other XML, because a damaged tag could otherwise hide its object.
 */

export interface XmlElement {
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** Text directly in the element, with resolved entities. */
  readonly text: string;
}

const DECLARATION =
  /^\uFEFF?(?:<\?xml[ \t\n]+version=(?:"1\.0"|'1\.0')(?:[ \t\n]+encoding=(?:"[Uu][Tt][Ff]-8"|'[Uu][Tt][Ff]-8'))?(?:[ \t\n]+standalone=(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\n]*\?>)?[ \t\n]*/;
const TAG = /<(\/?)([A-Za-z_][\w.:-]*)((?:[ \t\n]+[A-Za-z_][\w.:-]*=(?:"[^"<]*"|'[^'<]*'))*)[ \t\n]*(\/?)>/;
// eslint-disable-next-line no-control-regex -- the expression must match control characters
const NO_CHARACTERS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\]\]>/;
const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }),
);

interface OpenElement extends XmlElement {
  children: XmlElement[];
  text: string;
}

/** Of all elements without children, which are most. */
const NONE: XmlElement[] = [];

/** The root element. Throws a SyntaxError with the problem and its position. */
export function readXml(document: string): XmlElement {
  const xml = document.includes('\r') ? document.replaceAll(/\r\n?/g, '\n') : document;
  const refused = xml.search(NO_CHARACTERS);
  if (refused >= 0) throw wrong('characters that XML does not have', refused);
  const outside: OpenElement = { name: '', children: NONE, text: '' };
  const open: [OpenElement, ...OpenElement[]] = [outside];
  const tagAt = tagReader(xml);
  let at = DECLARATION.exec(xml)?.[0].length ?? 0;
  while (at < xml.length) {
    const next = xml.indexOf('<', at);
    if (next === at) {
      at += takeTag(tagAt(at), at, open);
      continue;
    }
    const end = next < 0 ? xml.length : next;
    (open.at(-1) ?? outside).text += textOf(xml.slice(at, end), at);
    at = end;
  }
  const [root, more] = outside.children;
  if (root === undefined || more !== undefined || /[^ \t\n]/.test(outside.text))
    throw wrong('not one element', xml.length);
  if (open.length > 1) throw wrong('an element is not closed', xml.length);
  return root;
}

interface Tag {
  readonly text: string;
  readonly name: string;
  readonly attributes: string;
  readonly isClosing: boolean;
  readonly isSelfClosing: boolean;
  /** The tag that came after it the last time. */
  next?: Tag;
}

/** Returns a function that reads one tag after the other. A listing repeats the same tags many times, so the tag that is expected is compared first. */
function tagReader(xml: string): (at: number) => Tag {
  const tags = new RegExp(TAG, 'y');
  const known = new Map<string, Tag>();
  let last: Tag | undefined;
  return (at) => {
    const expected = last?.next;
    if (expected !== undefined && xml.startsWith(expected.text, at)) return (last = expected);
    tags.lastIndex = at;
    const found = tags.exec(xml);
    if (found === null) throw wrong('no tag', at);
    const [text, closing, name = '', attributes = '', selfClosing] = found;
    const isClosing = closing === '/';
    const tag = known.get(text) ?? { text, name, attributes, isClosing, isSelfClosing: selfClosing === '/' };
    known.set(text, tag);
    if (last !== undefined) last.next = tag;
    return (last = tag);
  };
}

/** Adds the tag to the open elements, or closes one. Returns the length of the tag. */
function takeTag(tag: Tag, at: number, open: [OpenElement, ...OpenElement[]]): number {
  const { name, attributes, isClosing, isSelfClosing } = tag;
  const parent = open.at(-1) ?? open[0];
  if (isClosing) {
    if (open.length === 1 || parent.name !== name || attributes !== '' || isSelfClosing)
      throw wrong(`</${name}> closes nothing`, at);
    open.pop();
  } else {
    const element: OpenElement = { name, children: NONE, text: '' };
    if (parent.children === NONE) parent.children = [element];
    else parent.children.push(element);
    if (!isSelfClosing) open.push(element);
  }
  return tag.text.length;
}

function textOf(raw: string, at: number): string {
  if (!raw.includes('&')) return raw;
  return raw.replaceAll(/&(?:([#a-z0-9]{1,8});)?/gi, (whole, entity = '') => {
    const character = ENTITIES.get(entity) ?? characterOf(entity);
    if (character === undefined) throw wrong(`${JSON.stringify(whole)} is not an entity`, at);
    return character;
  });
}

function characterOf(entity: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(entity) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : undefined;
}

function wrong(problem: string, at: number): SyntaxError {
  return new SyntaxError(`${problem} at ${at}`);
}
