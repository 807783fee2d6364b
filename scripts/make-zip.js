// Builds zips for the demo archive, the tests and the benchmarks: ordinary ones, unusual ones and contradictory ones.
import { crc32, deflateRawSync } from 'node:zlib';

const UTF8_FLAG = 0x0800;
const DESCRIPTOR_FLAG = 0x0008;
const ENCRYPTED_FLAG = 0x0001;
// 1980-01-01 00:00:00, the first DOS date: the same input always gives the same bytes.
const DOS_TIME = 0;
const DOS_DATE = 0x0021;
const MAX_32 = 0xffffffff;
const ZIP64_EXTRA_ID = 0x0001;

/**
 * Fields of a header; each one that is left out has its true value.
 * @typedef {object} Claims
 * @property {string} [name]
 * @property {number} [method]
 * @property {number} [flags] replaces the general purpose bits
 * @property {number} [crc32]
 * @property {number} [size] uncompressed bytes
 * @property {number} [compressedSize]
 * @property {number} [offset] of the local header (central only)
 */

/**
 * @typedef {object} Member
 * @property {string} name
 * @property {Buffer | string} data uncompressed
 * @property {number} [method] 0 or 8 (default); any other number is written down but stored as it is
 * @property {number} [level] deflate level
 * @property {Buffer} [compressed] taken as the compressed bytes instead of deflating `data`
 * @property {boolean} [utf8] sets the UTF-8 flag (default: when the name is not ASCII)
 * @property {boolean} [encrypted] sets the flag only; the data stays readable
 * @property {boolean | 'no-signature'} [dataDescriptor] sizes and CRC after the data, zeros in the local header
 * @property {boolean} [zip64] sizes and offset in the ZIP64 extra field
 * @property {Buffer} [localExtra]
 * @property {Buffer} [centralExtra]
 * @property {string} [comment]
 * @property {Claims} [both] lies told by both headers
 * @property {Claims} [local] lies told by the local header only
 * @property {Claims} [central] lies told by the central header only
 */

/**
 * @typedef {object} ZipOptions
 * @property {string} [comment] archive comment
 * @property {Buffer} [prefix] bytes before the first member
 * @property {boolean} [prefixCounted] offsets count the prefix (default true)
 * @property {Buffer} [suffix] bytes behind the end record that it does not know of
 * @property {boolean} [zip64] adds the ZIP64 end record and locator
 * @property {number} [entryCount] what the end record claims
 * @property {number} [diskNumber]
 */

/** @typedef {{ name: Buffer, method: number, flags: number, crc32: number, size: number, compressedSize: number, offset: number }} Header */

/**
 * One zip, deterministic: the same arguments give the same bytes.
 * @param {readonly Member[]} members
 * @param {ZipOptions} [options]
 * @returns {Buffer}
 */
export function makeZip(members, options = {}) {
  const prefix = options.prefix ?? Buffer.alloc(0);
  const counted = options.prefixCounted === false ? 0 : prefix.length;
  /** @type {Buffer[]} */
  const parts = [];
  /** @type {Buffer[]} */
  const central = [];
  let offset = counted;
  for (const member of members) {
    const packed = member.compressed ?? pack(member);
    const truth = headerOf(member, packed, offset);
    const local = Buffer.concat([localHeader(member, truth), packed, descriptor(member, truth)]);
    parts.push(local);
    central.push(centralHeader(member, truth));
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = endRecords(members.length, directory.length, offset, options);
  return Buffer.concat([prefix, ...parts, directory, end, options.suffix ?? Buffer.alloc(0)]);
}

/** @param {Member} member */
function pack(member) {
  const data = Buffer.from(member.data);
  if ((member.method ?? 8) !== 8) return data;
  return deflateRawSync(data, member.level === undefined ? {} : { level: member.level });
}

/**
 * @param {Member} member
 * @param {Buffer} packed
 * @param {number} offset
 * @returns {Header}
 */
function headerOf(member, packed, offset) {
  const data = Buffer.from(member.data);
  const name = Buffer.from(member.name);
  const utf8 = member.utf8 ?? name.some((byte) => byte > 0x7f);
  const flags =
    (utf8 ? UTF8_FLAG : 0) |
    (member.encrypted === true ? ENCRYPTED_FLAG : 0) |
    (member.dataDescriptor === undefined || member.dataDescriptor === false ? 0 : DESCRIPTOR_FLAG);
  return {
    name,
    method: member.method ?? 8,
    flags,
    crc32: crc32(data),
    size: data.length,
    compressedSize: packed.length,
    offset,
  };
}

/**
 * @param {Header} header
 * @param {(Claims | undefined)[]} claims
 * @returns {Header}
 */
function lie(header, ...claims) {
  let said = header;
  for (const claim of claims) {
    if (claim === undefined) continue;
    const { name, ...numbers } = claim;
    said = { ...said, ...numbers, ...(name === undefined ? {} : { name: Buffer.from(name) }) };
  }
  return said;
}

/**
 * @param {Member} member
 * @param {Header} truth
 */
function localHeader(member, truth) {
  const hidden = (truth.flags & DESCRIPTOR_FLAG) !== 0 ? { crc32: 0, size: 0, compressedSize: 0 } : {};
  const said = lie(truth, hidden, member.both, member.local);
  const zip64 = member.zip64 === true ? zip64Extra([said.size, said.compressedSize]) : Buffer.alloc(0);
  const extra = Buffer.concat([zip64, member.localExtra ?? Buffer.alloc(0)]);
  const header = Buffer.alloc(30);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(member.zip64 === true ? 45 : 20, 4);
  writeCommon(header, 6, said, member.zip64 === true);
  header.writeUInt16LE(said.name.length, 26);
  header.writeUInt16LE(extra.length, 28);
  return Buffer.concat([header, said.name, extra]);
}

/**
 * @param {Member} member
 * @param {Header} truth
 */
function centralHeader(member, truth) {
  const said = lie(truth, member.both, member.central);
  const zip64 =
    member.zip64 === true ? zip64Extra([said.size, said.compressedSize, said.offset]) : Buffer.alloc(0);
  const extra = Buffer.concat([zip64, member.centralExtra ?? Buffer.alloc(0)]);
  const comment = Buffer.from(member.comment ?? '');
  const header = Buffer.alloc(46);
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(20, 4);
  header.writeUInt16LE(member.zip64 === true ? 45 : 20, 6);
  writeCommon(header, 8, said, member.zip64 === true);
  header.writeUInt16LE(said.name.length, 28);
  header.writeUInt16LE(extra.length, 30);
  header.writeUInt16LE(comment.length, 32);
  header.writeUInt32LE(member.zip64 === true ? MAX_32 : said.offset, 42);
  return Buffer.concat([header, said.name, extra, comment]);
}

/**
 * The run of fields that both headers share, from the flags to the sizes.
 * @param {Buffer} header
 * @param {number} at
 * @param {Header} said
 * @param {boolean} zip64
 */
function writeCommon(header, at, said, zip64) {
  header.writeUInt16LE(said.flags, at);
  header.writeUInt16LE(said.method, at + 2);
  header.writeUInt16LE(DOS_TIME, at + 4);
  header.writeUInt16LE(DOS_DATE, at + 6);
  header.writeUInt32LE(said.crc32, at + 8);
  header.writeUInt32LE(zip64 ? MAX_32 : said.compressedSize, at + 12);
  header.writeUInt32LE(zip64 ? MAX_32 : said.size, at + 16);
}

/** @param {number[]} values */
function zip64Extra(values) {
  const extra = Buffer.alloc(4 + 8 * values.length);
  extra.writeUInt16LE(ZIP64_EXTRA_ID, 0);
  extra.writeUInt16LE(8 * values.length, 2);
  values.forEach((value, index) => extra.writeBigUInt64LE(BigInt(value), 4 + 8 * index));
  return extra;
}

/**
 * @param {Member} member
 * @param {Header} truth
 */
function descriptor(member, truth) {
  if ((truth.flags & DESCRIPTOR_FLAG) === 0) return Buffer.alloc(0);
  const signature = Buffer.from(member.dataDescriptor === 'no-signature' ? '' : 'PK\x07\x08', 'latin1');
  const said = lie(truth, member.both);
  const width = member.zip64 === true ? 8 : 4;
  const record = Buffer.alloc(4 + 2 * width);
  record.writeUInt32LE(said.crc32, 0);
  [said.compressedSize, said.size].forEach((value, index) => {
    if (width === 8) record.writeBigUInt64LE(BigInt(value), 4 + 8 * index);
    else record.writeUInt32LE(value, 4 + 4 * index);
  });
  return Buffer.concat([signature, record]);
}

/**
 * @param {number} members
 * @param {number} directorySize
 * @param {number} directoryOffset
 * @param {ZipOptions} options
 */
function endRecords(members, directorySize, directoryOffset, options) {
  const count = options.entryCount ?? members;
  const comment = Buffer.from(options.comment ?? '');
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(options.diskNumber ?? 0, 4);
  end.writeUInt16LE(options.zip64 === true ? 0xffff : count, 8);
  end.writeUInt16LE(options.zip64 === true ? 0xffff : count, 10);
  end.writeUInt32LE(options.zip64 === true ? MAX_32 : directorySize, 12);
  end.writeUInt32LE(options.zip64 === true ? MAX_32 : directoryOffset, 16);
  end.writeUInt16LE(comment.length, 20);
  const zip64 =
    options.zip64 === true ? zip64End(count, directorySize, directoryOffset, options.diskNumber ?? 0) : [];
  return Buffer.concat([...zip64, end, comment]);
}

/**
 * @param {number} count
 * @param {number} directorySize
 * @param {number} directoryOffset
 * @param {number} diskNumber
 */
function zip64End(count, directorySize, directoryOffset, diskNumber) {
  const record = Buffer.alloc(56);
  record.writeUInt32LE(0x06064b50, 0);
  record.writeBigUInt64LE(44n, 4);
  record.writeUInt16LE(45, 12);
  record.writeUInt16LE(45, 14);
  record.writeUInt32LE(diskNumber, 16);
  record.writeBigUInt64LE(BigInt(count), 24);
  record.writeBigUInt64LE(BigInt(count), 32);
  record.writeBigUInt64LE(BigInt(directorySize), 40);
  record.writeBigUInt64LE(BigInt(directoryOffset), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(directoryOffset + directorySize), 8);
  locator.writeUInt32LE(1, 16);
  return [record, locator];
}
