#!/usr/bin/env node
// Inflating, hashing to disk and DuckDB share libuv's pool, whose size is read once, at its first use.
import { availableParallelism } from 'node:os';

process.env['UV_THREADPOOL_SIZE'] ??= String(Math.max(4, availableParallelism() * 2));

const { main } = await import('../dist/cli/process.js');
await main();
