import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { errnoOf, usage } from '../errors.js';

/** Content of a YAML or JSON file (JSON is YAML); usage errors for a file that cannot be read or parsed. */
export async function readConfigFile(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`--config: cannot read ${path} (${errnoOf(error)})`);
  }
  try {
    return parse(text, { schema: 'core' }) as unknown;
  } catch (error) {
    throw usage(
      `--config: ${path} is not YAML or JSON: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`,
    );
  }
}
