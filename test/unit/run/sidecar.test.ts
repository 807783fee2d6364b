import { describe, expect, it } from 'vitest';
import type { Fetch } from '../../../src/model/fetch.js';
import { downloadObject } from '../../../src/run/objects/download-object.js';
import { verifyLayer } from '../../../src/http/transport/verify-body.js';
import { systemClock } from '../../../src/model/clock.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { makeZip } from '../../../scripts/make-zip.js';
import { period, SETTINGS } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { answer } from '../../helpers/requests.js';

const folder = scratchFolder();
const NAME = 'BTCUSDT-1m-2024-01-15.zip';
const ZIP = makeZip([{ name: 'BTCUSDT-1m-2024-01-15.csv', data: '1705276800000,1\n' }]);
const { sha256: DIGEST } = answer(ZIP);

/** What the object is taken for beside this sidecar. */
async function verifiedBy(sidecar: string): Promise<string | undefined> {
  const wire: Fetch = ({ url }) => Promise.resolve(answer(url.endsWith('.CHECKSUM') ? sidecar : ZIP));
  const arrived = await downloadObject(
    {
      fetch: verifyLayer(wire),
      exchange: loadBinance(),
      options: {
        archiveUrl: 'http://archive.test',
        staleChecksum: 'fail',
        verify: 'sha256',
        priority: 'normal',
      },
      runFolder: folder,
      stop: new AbortController(),
      live: new LiveRun(systemClock),
      zips: undefined,
    },
    {
      series: { market: 'spot', dataset: 'klines', symbol: 'BTCUSDT' },
      settings: SETTINGS,
      label: '',
      tasks: [],
    },
    { key: `data/${NAME}`, period: period('2024-01-15') },
  );
  return 'received' in arrived ? arrived.received.verified : undefined;
}

describe('a sidecar', () => {
  it.each([
    ['as published', `${DIGEST}  ${NAME}\n`],
    ['without a line end', `${DIGEST}  ${NAME}`],
    ['with CRLF', `${DIGEST}  ${NAME}\r\n`],
    ['in capitals', `${DIGEST.toUpperCase()}  ${NAME}\n`],
    ['of a binary file', `${DIGEST} *${NAME}\n`],
  ])('%s vouches for its zip', async (_, sidecar) => {
    expect(await verifiedBy(sidecar)).toBe('sidecar');
  });

  it.each([
    ['empty', ''],
    ['of another file', `${DIGEST}  ETHUSDT-1m-2024-01-15.zip\n`],
    ['of two files', `${DIGEST}  ${NAME}\n${DIGEST}  ${NAME}\n`],
    ['with a digest that is cut', `${DIGEST.slice(1)}  ${NAME}\n`],
    ['that is a page', `<html>${DIGEST}  ${NAME}</html>`],
  ])('%s counts as none', async (_, sidecar) => {
    expect(await verifiedBy(sidecar)).toBe('crc');
  });
});
