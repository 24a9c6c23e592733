// SPDX-License-Identifier: BSD-3-Clause
"use strict";
// A chaos client with locks of an npm package, started by cluster/chaos --client; quorlock-chaos(7) has the lines. Usage:
// chaos.js node-redlock|sesamecare-redlock|redlock-universal
//
// As careful as the package lets its user be: acquire and extend with its own drift factor, and the expiration looked at
// before each access. Not `using`: the signals of the first two are aborted after the validity has ended, and none shows
// the expiration. One try an acquire, with pauses as node-redlock makes them: node-redlock counts the validity of all
// tries from the first one, so that a lock after a few tries would be over already.
const fs = require("fs");
const { default: Redis } = require("ioredis");

const RETRY_MS = 200; // the default of node-redlock, with a jitter of 100
const ANSWER_LIMIT_MS = 100;
const told = (name) => process.env[`QUORLOCK_CHAOS_${name}`];
const keys = told("KEYS").split(",");
const answers = require("readline").createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const clients = told("NODES").split(",").map((node) => {
  const [host, port] = node.split(":");
  return new Redis({ host, port: Number(port) }).on("error", () => {}); // it connects again by itself
});

function ofRedlock(Redlock) {
  const redlock = new Redlock(clients, { retryCount: 0 });
  return (key, lease) => redlock.acquire([key], lease);
}

// It tells no validity: the lease counts from before the call, less the drift. It waits for every node, hence the limit.
function ofUniversal({ createRedlock, IoredisAdapter }) {
  const adapters = clients.map((client) => new IoredisAdapter(client, { timeout: ANSWER_LIMIT_MS }));
  const until = (lease) => Date.now() + lease - Math.floor(lease * 0.01) - 2;
  const asHeld = (lock, handle, expiration) => ({
    expiration,
    async extend(lease) {
      const later = until(lease);
      if (!await lock.extend(handle, lease)) throw new Error("not extended");
      return asHeld(lock, handle, later);
    },
    release: () => lock.release(handle),
  });
  return async (key, ttl) => {
    const lock = createRedlock({ adapters, key, ttl, retryAttempts: 0 });
    const expiration = until(ttl);
    return asHeld(lock, await lock.acquire(), expiration);
  };
}

// {name: [package, what makes of it a function that takes a lock or throws]}
const [folder, made] = {
  "node-redlock": ["redlock", (it) => ofRedlock(it.default)],
  "sesamecare-redlock": ["@sesamecare-oss/redlock", (it) => ofRedlock(it.Redlock)],
  "redlock-universal": ["redlock-universal", ofUniversal],
}[process.argv[2]];
const take = made(require(folder));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const nowUs = () => Number(process.hrtime.bigint() / 1000n);
const draw = (low, high) => low + Math.floor(Math.random() * (high - low + 1));
const pickMs = (name) => draw(...told(`${name}_MS`).split("-").map(Number));
const oneIn = (times) => draw(1, times) === 1;
// Its expiration is by the wall clock. Too early, never too late, where this process stops in between.
const deadlineUs = (lock) => nowUs() + Math.floor((lock.expiration - Date.now()) * 1000);
let stop = false;

async function say(event, key, more) {
  process.stdout.write(`${JSON.stringify({ event, key, t_us: nowUs(), ...more })}\n`);
  const answer = await answers.next();
  if (answer.done) process.exit(1); // the harness is gone
  return Number(answer.value.split(" ").pop());
}

async function acquire(key, lease, waitMs) {
  const giveUp = Date.now() + waitMs;
  for (;;) {
    const lock = await take(key, lease).catch(() => null);
    if (lock || Date.now() >= giveUp || stop) return lock;
    await sleep(draw(RETRY_MS - 100, RETRY_MS + 100));
  }
}

// Reads first, writes what follows from it later. The lock as it is then, or null where it was lost.
async function hold(key, held, lease, lengthMs) {
  const end = Date.now() + lengthMs;
  let lock = held;
  let next = null;
  while (Date.now() < end && !stop) {
    if (lock.expiration - Date.now() < lease / 2) {
      const extended = await lock.extend(lease).catch(() => null);
      if (extended) {
        lock = extended;
        await say("renewed", key, { deadline_us: deadlineUs(lock) });
      }
    }
    if (lock.expiration <= Date.now()) return [lock, false];
    if (next === null) next = (await say("read", key)) + 1;
    else {
      await say("write", key, { value: next });
      next += 1;
    }
    await sleep(draw(2, 31));
  }
  return [lock, lock.expiration > Date.now()];
}

async function operate(key) {
  const lease = pickMs("LEASE");
  // Now and then a job longer than its lease, which lives by extend.
  const length = pickMs("HOLD") + (oneIn(10) ? Math.floor(lease * 1.5) : 0);
  await say("invoke", key);
  const lock = await acquire(key, lease, oneIn(6) ? 0 : pickMs("WAIT"));
  const t_us = nowUs();
  if (!lock) {
    await say("refused", key, { status: "HELD" });
    return;
  }
  let last = lock;
  if (lock.expiration <= Date.now()) await say("refused", key, { status: "LATE" });
  else {
    await say("granted", key, { t_us, deadline_us: deadlineUs(lock) });
    const [now, valid] = await hold(key, lock, lease, length);
    last = now;
    await (valid ? say("released", key) : say("lost", key, { status: "EXPIRED" }));
  }
  await last.release().catch(() => {});
}

async function main() {
  const installed = fs.readFileSync(`${__dirname}/node_modules/${folder}/package.json`, "utf8");
  const program = `${process.argv[2]} ${JSON.parse(installed).version}`;
  await say("hello", undefined, { version: 1, program });
  for (; !stop; await sleep(pickMs("THINK"))) await operate(keys[draw(0, keys.length - 1)]);
  process.exit(0);
}

process.on("SIGTERM", () => { stop = true; });
main();
