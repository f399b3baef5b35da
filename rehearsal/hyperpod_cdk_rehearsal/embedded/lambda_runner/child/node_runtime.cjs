// Lambda's Node.js runtime, the part of it that a handler sees: one event, one result, one log.
"use strict";
const { existsSync, readFileSync, writeFileSync } = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [eventFile, aboutFile, resultFile] = process.argv.slice(2);
const about = JSON.parse(readFileSync(aboutFile, "utf8"));

process.stdin.on("end", () => process.exit(1)).resume();
process.stdin.unref && process.stdin.unref();

const failed = (error, kind) => {
  const cause = error instanceof Error ? error : new Error(String(error));
  console.error(`[ERROR] ${cause.stack}`);
  return {
    error: {
      errorType: kind || cause.name,
      errorMessage: cause.message,
      trace: (cause.stack || "").split("\n"),
      requestId: about.aws_request_id,
    },
  };
};

const load = async (name) => {
  const base = path.resolve(process.env.LAMBDA_TASK_ROOT, name);
  const file = [".js", ".cjs", ".mjs"].map((end) => base + end).find(existsSync);
  if (!file) throw new Error(`Error: Cannot find module '${name}'`);
  return file.endsWith(".mjs") ? import(pathToFileURL(file)) : require(file);
};

const context = (done) => ({
  awsRequestId: about.aws_request_id,
  callbackWaitsForEmptyEventLoop: true,
  functionName: about.function_name,
  functionVersion: about.function_version,
  invokedFunctionArn: about.invoked_function_arn,
  logGroupName: about.log_group_name,
  logStreamName: about.log_stream_name,
  memoryLimitInMB: about.memory_limit_in_mb,
  getRemainingTimeInMillis: () => Math.max(0, Math.trunc(about.deadline_seconds * 1000 - Date.now())),
  done,
  succeed: (value) => done(null, value),
  fail: (error) => done(error || new Error("handler failed")),
});

const call = (handler, event) =>
  new Promise((resolve, reject) => {
    const done = (error, value) => (error ? reject(error) : resolve(value));
    const returned = handler(event, context(done), done);
    if (returned && typeof returned.then === "function") returned.then(resolve, reject);
  });

const outcome = async () => {
  const dot = process.env._HANDLER.lastIndexOf(".");
  const [name, exported] = [process.env._HANDLER.slice(0, dot), process.env._HANDLER.slice(dot + 1)];
  let module;
  try {
    module = await load(name);
  } catch (error) {
    return failed(error, "Runtime.ImportModuleError");
  }
  const handler = module[exported] || (module.default && module.default[exported]);
  if (typeof handler !== "function") {
    return failed(new Error(`${name}.${exported} is undefined or not exported`), "Runtime.HandlerNotFound");
  }
  try {
    const value = await call(handler, JSON.parse(readFileSync(eventFile, "utf8")));
    return { payload: JSON.stringify(value === undefined ? null : value) };
  } catch (error) {
    return failed(error);
  }
};

outcome().then((document) => {
  writeFileSync(resultFile, JSON.stringify(document));
  process.exit(0);
});
