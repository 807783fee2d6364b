/** Keeps secrets out of texts: a server may answer with what it was sent. */
import type { Credentials } from './credentials.js';

/** Shorter values are found in ordinary words. */
const SHORTEST = 8;
/** A text of a server is cut, and a secret in it too. The beginning of a secret with this length is hidden. */
const LONGEST_SHOWN = 12;
const HIDDEN = '(not shown)';
/** Credentials and signatures in headers and in addresses. */
const SIGNED = /\b((?:X-Amz-)?(?:Signature|Credential|Security-Token)=)[^\s,&"'<>]+/gi;

/** The texts that must not be shown. */
export class Secrets {
  readonly #values = new Set<string>();

  /** `shown`: texts that the user gave to be shown. A value that is a part of them is no secret. */
  add({ accessKeyId, secretAccessKey, sessionToken = '' }: Credentials, shown: string): void {
    for (const value of [accessKeyId, secretAccessKey, sessionToken])
      if (value.length >= SHORTEST && !shown.includes(value))
        for (const form of [value, encodeURIComponent(value)]) this.#values.add(form);
  }

  hiddenIn(text: string): string {
    let result = text.replaceAll(SIGNED, `$1${HIDDEN}`);
    for (const value of this.#values) result = withoutValue(result, value);
    return result;
  }

  /** Changes the error and its causes, because observers and the log may have them. Returns the error. */
  hideIn(error: unknown): unknown {
    for (let each = error; each instanceof Error; each = each.cause) {
      each.message = this.hiddenIn(each.message);
      if (each.stack !== undefined) each.stack = this.hiddenIn(each.stack);
    }
    return error;
  }

  /** The same function, without secrets in its errors. */
  hiding<T>(act: (given: T) => void): (given: T) => void {
    return (given) => {
      try {
        act(given);
      } catch (error) {
        throw this.hideIn(error);
      }
    };
  }
}

function withoutValue(text: string, value: string): string {
  const start = value.slice(0, LONGEST_SHOWN);
  let result = text;
  for (let at = result.indexOf(start); at >= 0; at = result.indexOf(start, at + HIDDEN.length)) {
    let end = at + start.length;
    while (end - at < value.length && result[end] === value[end - at]) end += 1;
    result = result.slice(0, at) + HIDDEN + result.slice(end);
  }
  return result;
}
