/** Reads files of options and jobs. Usage errors name the file and the key. */
import { parseDocument, type YAMLError } from 'yaml';
import { usage } from '../../model/errors.js';
import { didYouMean } from '../../text/did-you-mean.js';
import { readTextFile } from '../../text/read-text.js';
import type { VerbName } from './verb-spec.js';
import { FLAG_NAMES, flagSpec, type FlagName } from './flags.js';
import { isRecord } from '../../text/json.js';

const CONFIG_HINT = 'name a YAML or JSON file with lines like "market: spot"';

/**
 * Content of a YAML or JSON file (JSON is YAML). Throws usage errors for a file that cannot be read or parsed. `givenBy`: the flag
 * or argument that names the file.
 */
export async function readConfigFile(
  path: string,
  givenBy = '--config',
  hint = CONFIG_HINT,
): Promise<unknown> {
  const text = await readTextFile(path, givenBy, hint);
  const document = parseDocument(text, { schema: 'core', prettyErrors: true });
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) throw faultOf(fault, text, `${givenBy}: ${path}`);
  return document.toJS() as unknown;
}

/** The usage error for a text that is not YAML, with its line. `!ETHUSDT` and `*USDT` mean a tag and an alias in YAML. */
function faultOf({ message, linePos }: YAMLError, text: string, place: string): Error {
  const number = linePos?.[0].line ?? 1;
  const line = (text.split('\n')[number - 1] ?? '').trim();
  return usage(
    `${place} line ${number} is not YAML or JSON: ${line} (${message.split(/ at line |\n/)[0] ?? ''})`,
    "names with * and ! need quotes: symbols: '*USDT,!BUSD*'",
  );
}

/** The layer of a config file. It may have options of all verbs. */
export function configLayer(file: string, content: unknown, verb: VerbName) {
  const known = FLAG_NAMES.filter((name) => name !== 'config');
  return fileLayer(content, { origin: 'config file', place: file, known, hint: helpHint(verb) });
}

export const helpHint = (verb: VerbName): string => `keys are names of flags: cryptodl ${verb} --help`;

/** A map in a file, and the flags whose names are its keys. */
interface FileMap {
  readonly origin: 'config file' | 'job' | 'defaults of the jobs';
  /** The file, and the path of keys to the map. */
  readonly place: string;
  readonly known: readonly FlagName[];
  readonly hint: string;
}

/** The options in a map. Throws usage errors for other keys, and for values that are no texts and no lists of them. */
export function fileLayer(content: unknown, { origin, place, known, hint }: FileMap) {
  if (!isRecord(content))
    throw usage(`${place} is not a map of option names to values`, 'write lines like "market: spot"');
  const nameOf = (key: string): string => `${place}: ${key}`;
  const values: Partial<Record<FlagName, readonly string[]>> = {};
  for (const [key, value] of Object.entries(content)) {
    const name = known.find((candidate) => candidate === key);
    if (name === undefined) throw usage(`${place}: unknown key "${key}"`, didYouMean(key, known) ?? hint);
    const where = nameOf(key);
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (flagSpec(name).list === undefined && items.length !== 1)
      throw usage(`${where} takes one value, not a list`, `write ${key}: VALUE`);
    values[name] =
      flagSpec(name).isMap === true && isRecord(value)
        ? Object.entries(value).map(([part, item]) => `${part}=${scalarText(item, `${where}: ${part}`)}`)
        : items.map((item) => scalarText(item, where));
  }
  return { origin, values, nameOf };
}

function scalarText(value: unknown, where: string): string {
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return String(value);
  throw usage(`${where} is not a text, a number, true or false`, 'write a value, or leave the line out');
}
