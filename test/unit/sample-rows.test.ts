/** The first complete line of each chunk of a large CSV, while it is unpacked. */
import { describe, expect, it } from 'vitest';
import { LONGEST_LINE } from '../../src/convert/check-rows.js';
import { sampleRows } from '../../src/convert/inspect-rows.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { findDataset } from '../../src/source/venue.js';

const HEADER =
  'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio';
const ROW = '2024-01-15 00:05:00,BTCUSDT,1,2,3,4,5,6';

/** The error of the first chunk that is refused; undefined when none is. */
function refusalOf(...chunks: readonly string[]): unknown {
  const spec = findDataset(loadBinance(), 'um', 'metrics');
  if (spec === undefined) throw new Error('metrics is not declared');
  const look = sampleRows({ spec, symbol: 'BTCUSDT', name: 'x.csv' });
  try {
    for (const chunk of chunks) look(Buffer.from(chunk));
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('a large CSV that is looked at while it is unpacked', () => {
  it.each([
    ['with a header', [`${HEADER}\n${ROW}\n`]],
    ['without a header', [`${ROW}\n${ROW}\n`]],
    ['with carriage returns', [`${HEADER}\r\n${ROW}\r\n`, `${ROW}\r\n${ROW}\r\n`]],
    ['cut within its lines', [`${HEADER}\n${ROW.slice(0, 9)}`, `${ROW.slice(9)}\n${ROW}\n`]],
  ])('%s is passed', (_, chunks) => {
    expect(refusalOf(...chunks)).toBeUndefined();
  });

  it.each([
    ['another header', 'header-unknown', [`other\n${ROW}\n`]],
    ['a row of another symbol', 'symbol-mismatch', [`${HEADER}\n${ROW.replace('BTC', 'ETH')}\n`]],
    ['a wrong row in a later chunk', 'row-malformed', [`${HEADER}\n${ROW}\n`, `${ROW}\nx\n`]],
    ['a line of many chunks', 'row-malformed', ['0'.repeat(LONGEST_LINE), '0']],
  ])('%s is refused', (_, code, chunks) => {
    expect(refusalOf(...chunks)).toMatchObject({ code });
  });
});
