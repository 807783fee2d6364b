/** The profile of AWS in `~/.aws/config` and `~/.aws/credentials`. Source: AWS SDKs and Tools reference guide, "Shared config and credentials files". */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CryptodlError, errnoOf } from '../model/errors.js';
import { homeOf } from '../options/environment.js';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Profile {
  readonly name: string;
  /** All settings of the profile in both files, except for nested ones. */
  readonly settings: Readonly<Record<string, string>>;
}

/** The profile of AWS_PROFILE, or `default`. Rejects with `lake-refused` if a file is there but cannot be read. */
export function readProfile(environment: Environment): Profile {
  const name =
    nonEmpty(environment['AWS_PROFILE']) ?? nonEmpty(environment['AWS_DEFAULT_PROFILE']) ?? 'default';
  const home = homeOf(environment);
  const fileOf = (variable: string, file: string): string | undefined =>
    nonEmpty(environment[variable]) ?? (home === undefined ? undefined : join(home, '.aws', file));
  const config = sectionsOf(fileOf('AWS_CONFIG_FILE', 'config'));
  const credentials = sectionsOf(fileOf('AWS_SHARED_CREDENTIALS_FILE', 'credentials'));
  // In the config file, only the default profile stands without the word `profile`.
  const ofConfig = config.get(`profile ${name}`) ?? (name === 'default' ? config.get(name) : undefined);
  return { name, settings: { ...ofConfig, ...credentials.get(name) } };
}

type Sections = ReadonlyMap<string, Readonly<Record<string, string>>>;

function sectionsOf(path: string | undefined): Sections {
  return path === undefined ? new Map() : parseSections(textOf(path));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return '';
    throw new CryptodlError('lake-refused', `${path} cannot be read (${errnoOf(error)})`, {
      hint: 'make it readable for this user, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    });
  }
}

/** Lines that no rule covers are skipped, as the tools of AWS do. */
function parseSections(text: string): Sections {
  const sections = new Map<string, Record<string, string>>();
  let section: Record<string, string> | undefined;
  for (const line of text.split(/\r?\n/)) {
    const header = /^\[([^\]]+)\]/.exec(line)?.[1]?.trim().replaceAll(/\s+/g, ' ');
    if (header !== undefined) {
      section = sections.get(header) ?? {};
      sections.set(header, section);
      continue;
    }
    // An indented line belongs to a nested setting.
    const [, name, value = ''] = /^([A-Za-z_]\w*)\s*=(.*)$/s.exec(line) ?? [];
    if (section !== undefined && name !== undefined)
      section[name.toLowerCase()] = value
        .trimStart()
        .replace(/\s[#;].*/s, '')
        .trimEnd();
  }
  return sections;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
