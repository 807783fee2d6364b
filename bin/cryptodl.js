#!/usr/bin/env node
'use strict';

// CommonJS, because Node starts it several milliseconds earlier than an ES module.
const { join } = require('node:path');
const { createLoader } = require('./load-bundle.js');

// Without a listener, SIGUSR2 ends the process. Only runs that download write a debug dump.
process.on('SIGUSR2', () => undefined);

const [major, minor, patch] = process.versions.node.split('.').map(Number);
if (major * 1e6 + minor * 1e3 + patch < 20_018_001) {
  process.stderr.write(`cryptodl: needs Node 20.18.1 or newer, this is ${process.version}\n`);
  process.exit(1);
}

const load = createLoader(join(__dirname, '../dist/bundle'));
void load('program.cjs').main();
