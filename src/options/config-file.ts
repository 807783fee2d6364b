/** Reads files of options and jobs. */
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { errnoOf, usage } from '../model/errors.js';

/**
 * Content of a YAML or JSON file (JSON is YAML). Throws usage errors for a file that cannot be read or parsed. `givenBy`: the flag
 * or argument that names the file.
 */
export async function readConfigFile(path: string, givenBy = '--config', hint?: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`${givenBy}: cannot read ${path} (${errnoOf(error)})`, hint);
  }
  try {
    return parse(text, { schema: 'core' }) as unknown;
  } catch (error) {
    throw usage(
      `${givenBy}: ${path} is not YAML or JSON: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`,
    );
  }
}
