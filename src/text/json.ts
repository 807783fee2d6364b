/** Values from outside: JSON of files, answers and lines that may hold anything, and short texts of them. */

/** The value of a JSON text; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of a JSON object; none of any other value. */
export const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

// eslint-disable-next-line no-control-regex -- the expression must match control characters
const LABEL = /^[^\u0000-\u001f\u007f-\u009f]{0,256}$/;

/** Whether a text that a manifest keeps, for example an ETag, has up to 256 characters and no control characters. */
export const isLabel = (text: string): boolean => LABEL.test(text);
