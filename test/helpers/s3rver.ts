/** s3rver, an S3 server of other authors, in this process. It keeps objects in a folder, ignores conditions, and checks no signature. */
import { createRequire } from 'node:module';

interface S3rver {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}
type S3rverClass = new (options: Readonly<Record<string, unknown>>) => S3rver;

// The package has no types.
const require = createRequire(import.meta.url);

export interface ForeignServer {
  /** The variables with which a client finds the server and its credentials. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts the server with the bucket `lake`. */
export async function s3rver(directory: string): Promise<ForeignServer> {
  const Server = require('s3rver') as S3rverClass;
  const server = new Server({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: 'lake' }],
  });
  const { port } = await server.run();
  return {
    environment: {
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
      AWS_ACCESS_KEY_ID: 'S3RVER',
      AWS_SECRET_ACCESS_KEY: 'S3RVER',
    },
    close: () => server.close(),
  };
}
