/** Certificates of our own making, where openssl is there to make them. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
  /** The certificate's file, for --ca-file. */
  readonly file: string;
}

export interface CertificateOptions {
  /** `IP:127.0.0.1` or `DNS:name`. */
  readonly names: string;
  readonly days: number;
}

export const HAS_OPENSSL = answers('openssl', 'version');

function answers(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Self-signed. Negative days: over already. */
export function makeCertificate(folder: string, name: string, options: CertificateOptions): Certificate {
  const path = (ending: string): string => join(folder, `${name}.${ending}`);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { stdio: 'ignore' });
  };
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${options.names}`];
  openssl('req', '-new', ...curve, ...subject, '-keyout', path('key'), '-out', path('csr'));
  const copied = ['-copy_extensions', 'copyall', '-signkey', path('key'), '-days', String(options.days)];
  openssl('x509', '-req', '-in', path('csr'), ...copied, '-out', path('pem'));
  return {
    key: readFileSync(path('key'), 'utf8'),
    cert: readFileSync(path('pem'), 'utf8'),
    file: path('pem'),
  };
}
