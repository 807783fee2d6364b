/** The places of credentials: the variables of AWS, the keys of its profile, and the package of AWS for everything else. */
import { CryptodlError, errnoOf } from '../model/errors.js';
import type { Credentials, FindCredentials } from './credentials.js';
import { readProfile } from './profile-files.js';

type Settings = Readonly<Record<string, string | undefined>>;

const VARIABLES = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'] as const;
/** The names of the same values in a profile. */
const SETTINGS = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'] as const;

/** The package of AWS for single sign-on, roles, programs that print credentials, containers and instances. It is an optional peer. */
const PACKAGE = '@aws-sdk/credential-providers';

/** The part of the package that is used. */
interface CredentialProviders {
  fromNodeProviderChain(options: { readonly profile: string }): () => Promise<{
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
    readonly expiration?: Date;
  }>;
}

type LoadProviders = () => Promise<unknown>;

/** The name is no literal, so that the program compiles without the package. */
const loadInstalled: LoadProviders = async () => (await import(PACKAGE)) as unknown;

/** Rejects with `lake-refused` if no place has credentials. The files are read each time, because other programs renew the keys in them. */
export function findCredentials(environment: Settings, load: LoadProviders = loadInstalled): FindCredentials {
  return async () => {
    const ofEnvironment = keysIn(environment, VARIABLES);
    if (ofEnvironment !== undefined) return ofEnvironment;
    const { name: profile, settings } = readProfile(environment);
    const ofProfile = keysIn(settings, SETTINGS, ` of the profile ${profile}`);
    // A role is assumed with the keys of its profile or of another one.
    if (ofProfile !== undefined && settings['role_arn'] === undefined) return ofProfile;
    return fromPackage(profile, load);
  };
}

/** Undefined without keys. Throws `lake-refused` for half of a pair. `of`: its place, for messages. */
function keysIn(
  settings: Settings,
  names: readonly [string, string, string],
  of = '',
): Credentials | undefined {
  const [accessKeyId = '', secretAccessKey = '', sessionToken = ''] = names.map((name) => settings[name]);
  if (accessKeyId === '' && secretAccessKey === '') return undefined;
  if (accessKeyId === '' || secretAccessKey === '') {
    const missing = names[accessKeyId === '' ? 0 : 1] + of;
    throw new CryptodlError(
      'lake-refused',
      `${missing} is not set, but the other half of the credentials is`,
      {
        hint: `set ${missing} too, or remove both`,
      },
    );
  }
  return { accessKeyId, secretAccessKey, ...(sessionToken === '' ? {} : { sessionToken }) };
}

async function fromPackage(profile: string, load: LoadProviders): Promise<Credentials> {
  try {
    const providers = (await load()) as CredentialProviders;
    const found = await providers.fromNodeProviderChain({ profile })();
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = found;
    return { accessKeyId, secretAccessKey, sessionToken, expiresAt: expiration?.getTime() };
  } catch (error) {
    const isMissing = errnoOf(error) === 'ERR_MODULE_NOT_FOUND';
    const text = error instanceof Error && !isMissing ? `: ${error.message.slice(0, 300)}` : '';
    throw new CryptodlError('lake-refused', `no credentials for the bucket were found${text}`, {
      cause: error,
      hint: `set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE${
        isMissing
          ? `; for single sign-on, roles, containers and instances: npm install ${PACKAGE} (with -g if cryptodl was installed with -g)`
          : ', or log in again (aws sso login)'
      }`,
    });
  }
}
