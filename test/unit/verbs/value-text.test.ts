/** The texts of numbers in exported files. */
import { expect, it } from 'vitest';
import { MACROS } from '../../../src/verbs/export/export-file.js';
import { useSql } from '../../helpers/sql.js';

const query = useSql();

it.each([
  ["'1.10'", '1.10'],
  ["'2.0'", '2.0'],
  ['2.0::DOUBLE', '2'],
  ['0.1::DOUBLE', '0.1'],
  ['0.0::DOUBLE', '0'],
  ['1e-7::DOUBLE', '0.0000001'],
  ['-1.25e-7::DOUBLE', '-0.000000125'],
  ['1.2345678901234568e-10::DOUBLE', '0.00000000012345678901234568'],
  ['9007199254740993::BIGINT', '9007199254740993'],
  ['1e15::DOUBLE', '1000000000000000'],
  ['1.5e16::DOUBLE', '15000000000000000'],
  ['1.2345678901234568e21::DOUBLE', '1234567890123456800000'],
  ['1e22::DOUBLE', '10000000000000000000000'],
])('%s is written as %s', async (value, text) => {
  await query(MACROS);
  expect(await query(`SELECT num(x) AS text FROM (SELECT ${value} AS x)`)).toEqual([{ text }]);
});
