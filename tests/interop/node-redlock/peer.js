// SPDX-License-Identifier: BSD-3-Clause
"use strict";
// A peer of the interoperation tests: locks of node-redlock, by orders on stdin. The orders and events are those
// of ours.c; usage: node peer.js NODE...
//
//   SLOT extend LEASE_MS      extended | failed TEXT
//   SLOT using KEY LEASE_MS   acquired OWNER: extends itself, until release; aborted: it could not
const fs = require("fs");
const readline = require("readline");
const { default: Redis } = require("ioredis");
const { default: Redlock } = require("redlock");

const COUNTER_DIGITS = 12;
const HOLD_MS = 2;
const THINK_MS_MAX = 40; // between two turns of a contention test, at random
const RETRY_MS = 100; // its own default is 200
const clients = process.argv.slice(2).map((node) => {
  const [host, port] = node.split(":");
  return new Redis({ host, port: Number(port) });
});
const redlock = new Redlock(clients, { retryDelay: RETRY_MS, retryJitter: RETRY_MS / 2 });
const slots = new Map();

function say(slot, ...words) {
  process.stdout.write([slot, ...words].join(" ").replace(/\n/g, " ") + "\n");
}

function die(error) {
  process.stderr.write(`${error.stack || error}\n`);
  process.exit(1);
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function acquire(name, key, lease, wait) {
  const retryCount = Math.ceil(wait / RETRY_MS);
  const lock = await redlock.acquire([key], lease, { retryCount });
  say(name, "acquired", lock.value);
  return lock;
}

// Held until the order to release comes; `give` tells the slot how.
function using(name, key, lease, slot) {
  const settings = { retryCount: 0, automaticExtensionThreshold: lease / 2 };
  return redlock.using([key], lease, settings, async (signal) => {
    signal.addEventListener("abort", () => say(name, "aborted"));
    say(name, "acquired", await Promise.resolve(clients[0].get(key)));
    await new Promise((resolve) => { slot.leave = resolve; });
    if (signal.aborted) throw signal.error;
  });
}

// One turn inside: reads the number, takes its time, writes the next. False where the lock did not last.
async function increment(file, lock) {
  const text = Buffer.alloc(COUNTER_DIGITS);
  fs.readSync(file, text, 0, COUNTER_DIGITS, 0);
  await sleep(HOLD_MS);
  if (lock && lock.expiration <= Date.now()) return false;
  fs.writeSync(file, String(Number(text) + 1).padStart(COUNTER_DIGITS, "0"), 0);
  return true;
}

// Between its tries node-redlock keeps the votes that it got, and refuses itself with them: many such waiters
// block one another until their tries end. So each try here is an acquire of its own, with pauses as it makes.
async function contend(name, key, lease, path, length) {
  const file = fs.openSync(path, "r+");
  const trace = fs.openSync(`${path}.trace`, "a");
  const tell = (what, lock) => fs.writeSync(trace,
    `${(Date.now() / 1000).toFixed(6)} ${name} ${what} theirs ${lock ? lock.value : "-"}\n`);
  const end = Date.now() + length;
  let turns = 0;
  let late = 0;
  while (Date.now() < end) {
    let lock = null;
    if (key) {
      lock = await redlock.acquire([key], lease, { retryCount: 0 }).catch(() => null);
      if (!lock) {
        await sleep(RETRY_MS / 2 + Math.random() * RETRY_MS);
        continue;
      }
    }
    tell("enter", lock);
    const made = await increment(file, lock);
    if (made) turns += 1;
    else late += 1;
    tell(made ? "leave" : "late", lock);
    if (lock) await lock.release().catch(() => {});
    await sleep(Math.random() * THINK_MS_MAX);
  }
  fs.closeSync(file);
  fs.closeSync(trace);
  say(name, "contended", turns, late);
}

async function obey(name, slot, verb, words) {
  switch (verb) {
    case "acquire":
      await acquire(name, words[0], Number(words[1]), Number(words[2])).then(
        (lock) => { slot.lock = lock; }, (error) => say(name, "refused", error.message));
      break;
    case "using":
      // Not awaited: the order that ends it is still to come.
      slot.use = using(name, words[0], Number(words[1]), slot).then(
        () => say(name, "released"), (error) => say(name, slot.leave ? "failed" : "refused", error.message))
        .then(() => { slot.leave = null; });
      break;
    case "release":
      if (slot.leave) slot.leave();
      else await slot.lock.release().then(() => say(name, "released"), (error) => say(name, "failed", error.message));
      break;
    case "extend":
      await slot.lock.extend(Number(words[0])).then(
        (lock) => { slot.lock = lock; say(name, "extended"); }, (error) => say(name, "failed", error.message));
      break;
    case "contend":
      await contend(name, words[0], Number(words[1]), words[2], Number(words[3]));
      break;
    case "bare":
      await contend(name, null, 0, words[2], Number(words[3]));
      break;
    default:
      throw new Error(`no such order: ${verb}`);
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const [name, verb, ...words] = line.split(" ");
  if (!slots.has(name)) slots.set(name, { last: Promise.resolve() });
  const slot = slots.get(name);
  // A slot's orders one after another.
  slot.last = slot.last.then(() => obey(name, slot, verb, words)).catch(die);
}).on("close", () => process.exit(0));

const installed = fs.readFileSync(`${__dirname}/node_modules/redlock/package.json`, "utf8");
say("-", "ready", "node-redlock", JSON.parse(installed).version);
