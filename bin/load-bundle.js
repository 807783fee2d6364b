'use strict';

// Loads the files of the bundle with the code caches of V8 that the build made, so that V8 does not compile them at each start.
const { readFileSync, statSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');
const vm = require('node:vm');

/**
 * The build of Node that runs. A code cache fits only the build that made it. V8 11.3, which all releases of Node 20 have, also accepts the cache of
 * another release, and the process ends with SIGSEGV. Builds of one release with other options differ in the size of their binary.
 */
const buildOfNode = () =>
  `${process.version}-${process.platform}-${process.arch}-${statSync(process.execPath).size}`;

/** The code cache of a file of the bundle for a build of Node. V8 rejects a cache that was made with other flags, or for a file with another length. */
const cachePathOf = (path, build) => `${path}.${build}.cache`;

/** A cache holds the name of its script. It is the same on all machines, so that `src/terminal/print-error.ts` finds the source map. */
const scriptNameOf = (name) => `cryptodl-bundle/${name}`;

const WRAPPER = '(function (exports, require, module, __filename, __dirname, impESM) {';

/**
 * Returns a function that loads a file of the folder, once, and returns its exports. Without a fitting cache, V8 compiles the file.
 * `onLoaded` receives the path of the cache, the script, and whether V8 took the cache.
 */
exports.createLoader = (folder, onLoaded) => {
  const modules = new Map();
  const build = buildOfNode();
  const load = (name) => {
    const known = modules.get(name);
    if (known !== undefined) return known.exports;
    const path = join(folder, name);
    const module = { exports: {} };
    modules.set(name, module);
    const cachePath = cachePathOf(path, build);
    const cachedData = readCache(cachePath);
    const script = new vm.Script(`${WRAPPER}${readFileSync(path, 'utf8')}\n})`, {
      filename: scriptNameOf(name),
      // The columns of the first line are those of the file, as in its source map.
      columnOffset: -WRAPPER.length,
      ...(cachedData === undefined ? {} : { cachedData }),
    });
    onLoaded?.(cachePath, script, cachedData !== undefined && script.cachedDataRejected === false);
    const requireOther = createRequire(path);
    const requireAny = (id) =>
      id.startsWith('./') && id.endsWith('.cjs') ? load(id.slice(2)) : requireOther(id);
    const own = [module.exports, Object.assign(requireAny, requireOther), module, path, folder];
    script.runInThisContext()(...own, importPackage);
    return module.exports;
  };
  return load;
};

/** A script of node:vm cannot import ES modules by itself; the build replaces its `import()`. */
function importPackage(name) {
  return import(name);
}

/** Undefined if there is no cache for this version of Node, or if it cannot be read. */
function readCache(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
