/**
 * The last failures, for whoever looks at a run while it goes on and at its end. The report on disk has all of them; what
 * is in memory is bounded, and says how much it let go (mechanism Z2).
 */
import type { CryptodlError, ErrorCode } from '../errors.js';

const MOST = 1000;
/** One symbol that fails every day must not hide the others. */
const MOST_PER_SYMBOL = 10;

export interface FailureRecord {
  readonly symbol: string;
  readonly key: string;
  readonly code: ErrorCode;
  readonly message: string;
}

export class FailureRecords {
  /** Failures that are not among the records any more. */
  dropped = 0;
  /** By symbol, oldest first; a symbol moves to the end when it fails again. */
  readonly #bySymbol = new Map<string, FailureRecord[]>();
  #count = 0;

  add(symbol: string, key: string, { code, message }: CryptodlError): void {
    const records = this.#bySymbol.get(symbol) ?? [];
    this.#bySymbol.delete(symbol);
    this.#bySymbol.set(symbol, records);
    records.push({ symbol, key, code, message });
    this.#count += 1;
    if (records.length > MOST_PER_SYMBOL) this.#drop(records);
    if (this.#count > MOST) this.#dropOldest();
  }

  get size(): number {
    return this.#count;
  }

  /** Those with this code, up to so many. */
  examples(code: ErrorCode, most: number): FailureRecord[] {
    const found: FailureRecord[] = [];
    for (const records of this.#bySymbol.values()) {
      for (const record of records) if (record.code === code && found.length < most) found.push(record);
    }
    return found;
  }

  #dropOldest(): void {
    const [oldest] = this.#bySymbol;
    if (oldest === undefined) return;
    const [symbol, records] = oldest;
    this.#drop(records);
    if (records.length === 0) this.#bySymbol.delete(symbol);
  }

  #drop(records: FailureRecord[]): void {
    records.shift();
    this.#count -= 1;
    this.dropped += 1;
  }
}
