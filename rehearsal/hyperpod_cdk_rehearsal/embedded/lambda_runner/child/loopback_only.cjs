// Loaded before a Node.js handler: loopback is the only network, and a ResponseURL is reached over http.
"use strict";
const http = require("node:http");
const https = require("node:https");
const net = require("node:net");
const { readFileSync } = require("node:fs");

const LOOPBACK = /^(localhost|127\.|::1$|\[::1\]$)/;

const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0];
  const host = typeof first === "object" ? first.host : args[1];
  if (host && !(typeof first === "object" && first.path) && !LOOPBACK.test(String(host))) {
    const error = new Error(`the rehearsal has no network beyond this machine: ${host}`);
    error.code = "ENETUNREACH";
    process.nextTick(() => this.destroy(error));
    return this;
  }
  return connect.apply(this, args);
};

// handlers take the ResponseURL apart and keep only host name and path, for AWS always serves it on port 443
const responsePort = () => {
  const event = JSON.parse(readFileSync(process.argv[2], "utf8"));
  return event && event.ResponseURL ? new URL(event.ResponseURL).port : undefined;
};
const request = https.request;
https.request = function (options, ...rest) {
  const host = options && (options.hostname || options.host);
  if (host && LOOPBACK.test(host)) {
    return http.request({ ...options, port: options.port || responsePort(), protocol: "http:" }, ...rest);
  }
  return request.call(this, options, ...rest);
};
