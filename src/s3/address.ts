/** The URLs of a bucket and of its objects. */

/** The server of a bucket. */
export interface S3Place {
  readonly bucket: string;
  /** The address of a server that has the bucket in the path; undefined for AWS. Without a slash at its end. */
  readonly endpoint: string | undefined;
  readonly region: string;
}

/** The base address of all objects of a bucket, without a slash at its end. */
export function bucketUrl({ bucket, endpoint, region }: S3Place): string {
  if (endpoint !== undefined) return `${endpoint}/${bucket}`;
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The certificate of AWS covers one label before `s3`.
  return bucket.includes('.')
    ? `https://s3.${region}.${domain}/${bucket}`
    : `https://${bucket}.s3.${region}.${domain}`;
}

/** The URL of an object, or of the bucket without a key. */
export function requestUrl(place: S3Place, key: string, query: Readonly<Record<string, string>>): string {
  const path = key.split('/').map(encoded).join('/');
  const words = Object.entries(query).map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return `${bucketUrl(place)}/${path}${words.length === 0 ? '' : `?${words.join('&')}`}`;
}

/** Encodes all characters except those that are unreserved in RFC 3986, as the signature requires. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
