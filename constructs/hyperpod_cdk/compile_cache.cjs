// Loaded before jsii's program: has Node.js keep what it compiled of CDK's modules, for the next process.
//
// Node.js finds what it kept by a module's path, and jsii links its packages into a folder of another name at each
// start (jsii-kernel-*). A portable cache goes by the path from the cache to the module, so it is entered through a
// link within that folder. What is kept of a module holds only for the same text of it and the same Node.js
// (Node.js, "Module compile cache"). Without it everything works, only later: what cannot be had is left out.
"use strict";
const fs = require("node:fs");
const { enableCompileCache, flushCompileCache } = require("node:module");
const path = require("node:path");

const cache = process.env.HYPERPOD_CDK_COMPILE_CACHE;
const make = fs.mkdtempSync;

fs.mkdtempSync = (prefix, ...options) => {
  const folder = make(prefix, ...options);
  if (cache && path.basename(String(prefix)) === "jsii-kernel-") {
    fs.mkdtempSync = make;
    try {
      keep(path.join(folder, "compiled"));
    } catch {
      // a disk that is full, a home that cannot be written, a Node.js without such a cache
    }
  }
  return folder;
};

function keep(link) {
  fs.symlinkSync(cache, link, "dir");
  enableCompileCache({ directory: link, portable: true });
  // jsii removes the folder at the end, and Node.js would write after that
  process.once("exit", () => flushCompileCache());
}
