/** Reads files of options and jobs. */
import { readFile } from 'node:fs/promises';
import { parseDocument } from 'yaml';
import type { YAMLError } from 'yaml';
import { errnoOf, usage } from '../model/errors.js';
import { reasonOf } from '../text/path-faults.js';

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
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`${givenBy}: cannot read ${path} (${reasonOf(errnoOf(error))})`, hint);
  }
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
