/** Credentials that a container or a virtual machine gets from an address of its own host. */
import { readFileSync } from 'node:fs';
import { CryptodlError, errnoOf } from '../model/errors.js';
import type { Credentials, FindCredentials } from './credentials.js';

type Environment = Readonly<Record<string, string | undefined>>;

const TIMEOUT_MS = 2000;
const CONTAINER_HOST = 'http://169.254.170.2';
/** Besides loopback: the agents of ECS and of EKS (AWS SDKs reference guide, "Container credential provider"). */
const CONTAINER_HOSTS = ['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'];
const INSTANCE_HOST = 'http://169.254.169.254';
const TOKEN_SECONDS = '21600';

/** ECS, EKS Pod Identity, CodeBuild. */
export function fromContainer(environment: Environment): FindCredentials {
  return async (signal) => {
    const relative = environment['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'] ?? '';
    const full = environment['AWS_CONTAINER_CREDENTIALS_FULL_URI'] ?? '';
    if (relative === '' && full === '') return undefined;
    const url = relative === '' ? checkedUrl(full) : `${CONTAINER_HOST}/${relative.replace(/^\/+/, '')}`;
    const authorization = containerToken(environment);
    const headers = authorization === undefined ? {} : { authorization };
    const text = await ask(url, { headers }, signal);
    if (text === undefined) throw refusal('the credentials of the container are not available');
    return parseCredentials(text, 'the container');
  };
}

/** EC2 and its likes (IMDSv2). Resolves with undefined on a machine that is none of them. */
export function fromInstance(environment: Environment): FindCredentials {
  return async (signal) => {
    if (environment['AWS_EC2_METADATA_DISABLED']?.toLowerCase() === 'true') return undefined;
    const given = environment['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? '';
    const base = (given === '' ? INSTANCE_HOST : given).replace(/\/+$/, '');
    const token = await ask(
      `${base}/latest/api/token`,
      { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': TOKEN_SECONDS } },
      signal,
    );
    if (token === undefined) return undefined;
    const headers = { 'x-aws-ec2-metadata-token': token.trim() };
    const roles = `${base}/latest/meta-data/iam/security-credentials/`;
    const [role = ''] = (await ask(roles, { headers }, signal))?.trim().split('\n') ?? [];
    // A machine without a role has no credentials.
    if (!/^[\w+=,.@-]{1,128}$/.test(role)) return undefined;
    const text = await ask(roles + role, { headers }, signal);
    return text === undefined ? undefined : parseCredentials(text, 'the machine');
  };
}

/** The text of an answer with status 200; undefined for any other answer and for none. */
async function ask(url: string, request: RequestInit, signal: AbortSignal): Promise<string | undefined> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const response = await fetch(url, { ...request, redirect: 'error', signal: limit });
    const text = await response.text();
    return response.ok ? text : undefined;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/** Credentials travel without encryption only to this machine or to its host. */
function checkedUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isOwn = url !== undefined && (isLoopback(url.hostname) || CONTAINER_HOSTS.includes(url.hostname));
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isOwn)) return value;
  throw refusal('AWS_CONTAINER_CREDENTIALS_FULL_URI is not https, and not an address of this machine');
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function containerToken(environment: Environment): string | undefined {
  const file = environment['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'] ?? '';
  const token = file === '' ? environment['AWS_CONTAINER_AUTHORIZATION_TOKEN'] : readToken(file);
  if (token === undefined || token === '') return undefined;
  if (/[\r\n]/.test(token)) throw refusal('the authorization token of the container has more than one line');
  return token;
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw refusal(`AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: ${file} cannot be read (${errnoOf(error)})`);
  }
}

/** The error does not contain the answer, because of the secret in it. */
function parseCredentials(text: string, place: string): Credentials {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    answer = undefined;
  }
  const fields: Readonly<Record<string, unknown>> =
    typeof answer === 'object' && answer !== null ? { ...answer } : {};
  const {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    Token: token,
    Expiration: end,
  } = fields;
  const expiresAt = typeof end === 'string' ? Date.parse(end) : Number.NaN;
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string')
    throw refusal(`the credentials of ${place} cannot be read`);
  return {
    accessKeyId,
    secretAccessKey,
    ...(typeof token === 'string' && token !== '' ? { sessionToken: token } : {}),
    ...(Number.isNaN(expiresAt) ? {} : { expiresAt }),
  };
}

function refusal(message: string): CryptodlError {
  return new CryptodlError('lake-refused', message, {
    hint: 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE',
  });
}
