import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { errnoOf, usage } from '../model/errors.js';

/**
 * Content of a YAML or JSON file (JSON is YAML); usage errors for a file that cannot be read or parsed. `asked`: by whom
 * it was named.
 */
export async function readConfigFile(path: string, asked = '--config', hint?: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`${asked}: cannot read ${path} (${errnoOf(error)})`, hint);
  }
  try {
    return parse(text, { schema: 'core' }) as unknown;
  } catch (error) {
    throw usage(
      `${asked}: ${path} is not YAML or JSON: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`,
    );
  }
}
