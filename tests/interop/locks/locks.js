// SPDX-License-Identifier: BSD-3-Clause
"use strict";
// Locks of npm's packages by the orders of locks.py: node locks.js CLIENT NODE..., beside node_modules.
const readline = require("readline");
const { default: Redis } = require("ioredis");

const FOREVER_S = 60;
const [client, ...nodes] = process.argv.slice(2);
const servers = nodes.map((node) => {
  const [host, port] = node.split(":");
  return new Redis({ host, port: Number(port) });
});

// What gives the lock back, or null.
async function ofSemaphore(Mutex, where, name, lease, wait) {
  const lock = new Mutex(where, name, { lockTimeout: lease, acquireTimeout: FOREVER_S * 1000,
    acquireAttemptsLimit: wait ? Infinity : 1 });
  return await lock.tryAcquire() ? () => lock.release() : null;
}

async function ofIoredisLock(name, lease, wait) {
  const lock = require("@microfleet/ioredis-lock").createLock(servers[0],
    { timeout: lease, retries: wait ? FOREVER_S * 20 : 0, delay: 50 });
  return lock.acquire(name).then(() => () => lock.release(), () => null);
}

async function ofUniversal(lock) {
  return lock.acquire().then((handle) => () => lock.release(handle), () => null);
}

function universal(name, lease, wait) {
  const { createLock, IoredisAdapter } = require("redlock-universal");
  return ofUniversal(createLock({ adapter: new IoredisAdapter(servers[0]), key: name, ttl: lease,
    retryAttempts: wait ? FOREVER_S * 10 : 0, retryDelay: 100 }));
}

function universalQuorum(name, lease, wait) {
  const { createRedlock, IoredisAdapter } = require("redlock-universal");
  return ofUniversal(createRedlock({ adapters: servers.map((server) => new IoredisAdapter(server)), key: name, ttl: lease,
    retryAttempts: wait ? FOREVER_S * 5 : 0, retryDelay: 200 }));
}

const take = {
  "redis-semaphore Mutex": (...all) => ofSemaphore(require("redis-semaphore").Mutex, servers[0], ...all),
  "redis-semaphore RedlockMutex": (...all) => ofSemaphore(require("redis-semaphore").RedlockMutex, servers, ...all),
  "ioredis-lock": ofIoredisLock,
  "redlock-universal createLock": universal,
  "redlock-universal createRedlock": universalQuorum,
}[client];
let give = null;

async function obey(line) {
  const [verb, name, lease] = line.split(" ");
  if (verb === "give") {
    await give();
    process.stdout.write("given\n");
    return;
  }
  give = await take(name, Number(lease), verb === "wait");
  process.stdout.write(give ? "yes\n" : "no\n");
}

let last = Promise.all(servers.map((server) => server.ping())).then(() => process.stdout.write("ready\n"));
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  last = last.then(() => obey(line));
}).on("close", () => last.then(() => process.exit(0)));
