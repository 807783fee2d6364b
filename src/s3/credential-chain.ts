/** The places of credentials, in the order of the tools of AWS. */
import { CryptodlError, errnoOf } from '../model/errors.js';
import { fromContainer, fromInstance } from './credential-endpoints.js';
import { fromEnvironment } from './credentials.js';
import type { Credentials, FindCredentials } from './credentials.js';
import { keysOf, readProfile } from './profile-files.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The package of AWS for single sign-on, roles and programs that print credentials. It is an optional peer. */
const PACKAGE = '@aws-sdk/credential-providers';

/** The part of the package that is used. */
interface CredentialProviders {
  fromNodeProviderChain(options: { readonly profile?: string }): () => Promise<{
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
    readonly expiration?: Date;
  }>;
}

type LoadProviders = () => Promise<unknown>;

/** The name is no literal, so that the program compiles without the package. */
const loadInstalled: LoadProviders = async () => (await import(PACKAGE)) as unknown;

/** Settings of a profile that only the package of AWS can use. */
const OF_PACKAGE = [
  'credential_process',
  'sso_session',
  'sso_start_url',
  'login_session',
  'role_arn',
  'web_identity_token_file',
];

export function credentialPlaces(
  environment: Environment,
  load: LoadProviders = loadInstalled,
): FindCredentials[] {
  return [
    fromEnvironment(environment),
    (): Promise<Credentials | undefined> => fromProfile(environment, load),
    (): Promise<Credentials | undefined> =>
      (environment['AWS_WEB_IDENTITY_TOKEN_FILE'] ?? '') === ''
        ? Promise.resolve(undefined)
        : fromPackage(load, 'AWS_WEB_IDENTITY_TOKEN_FILE', {}),
    fromContainer(environment),
    fromInstance(environment),
  ];
}

/** The files are read each time, because other programs renew the keys in them. */
async function fromProfile(environment: Environment, load: LoadProviders): Promise<Credentials | undefined> {
  const profile = readProfile(environment);
  if (!profile.isThere && profile.name !== 'default')
    throw new CryptodlError('lake-refused', `there is no profile ${profile.name} of AWS`, {
      hint: 'check AWS_PROFILE, ~/.aws/config and ~/.aws/credentials',
    });
  const setting = OF_PACKAGE.find((name) => profile.settings[name] !== undefined);
  // A role is assumed with the keys of its profile or of another one.
  const needsPackage = setting !== undefined && (setting === 'role_arn' || keysOf(profile) === undefined);
  if (!needsPackage) return keysOf(profile);
  return fromPackage(load, `${setting} of the profile ${profile.name}`, { profile: profile.name });
}

async function fromPackage(
  load: LoadProviders,
  what: string,
  options: { readonly profile?: string },
): Promise<Credentials> {
  let providers: CredentialProviders;
  try {
    providers = (await load()) as CredentialProviders;
  } catch (error) {
    if (errnoOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new CryptodlError(
      'package-missing',
      `${what} needs the package ${PACKAGE}, which is not installed`,
      {
        cause: error,
        hint: `npm install ${PACKAGE} (with -g if cryptodl was installed with -g)`,
      },
    );
  }
  try {
    const found = await providers.fromNodeProviderChain(options)();
    const { accessKeyId, secretAccessKey, sessionToken, expiration } = found;
    return { accessKeyId, secretAccessKey, sessionToken, expiresAt: expiration?.getTime() };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new CryptodlError('lake-refused', `${what}: ${text.slice(0, 300)}`, {
      cause: error,
      hint: 'check the profile, or log in again (aws sso login)',
    });
  }
}
