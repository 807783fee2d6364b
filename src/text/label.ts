/** Short texts from outside that are kept in manifests and listings. */

// eslint-disable-next-line no-control-regex -- the expression must match control characters
const LABEL = /^[^\u0000-\u001f\u007f-\u009f]{0,256}$/;

/** Whether a text, for example an ETag, has up to 256 characters and no control characters. */
export const isLabel = (text: string): boolean => LABEL.test(text);
