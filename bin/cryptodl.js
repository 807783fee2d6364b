#!/usr/bin/env node
import { availableParallelism } from 'node:os';

// Without a listener, SIGUSR2 ends the process. Only runs that download write a debug dump.
process.on('SIGUSR2', () => undefined);

// Inflating, hashing to disk and DuckDB share libuv's pool, whose size is read once, at its first use.
process.env['UV_THREADPOOL_SIZE'] ??= String(Math.max(4, availableParallelism() * 2));

const { main } = await import('../dist/cli/process.js');
await main();
