#!/usr/bin/env node
// SPDX-License-Identifier: BSD-3-Clause
"use strict";
// A client for cluster/chaos. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.
// cluster/chaos --client 'node example.js'
const { randomBytes } = require("crypto");
const net = require("net");
const answers = require("readline").createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const setting = (name) => process.env[`QUORLOCK_CHAOS_${name}`];
const nodes = setting("NODES").split(",").map((node) => node.split(":"));
const keys = setting("KEYS").split(",");
const RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])";
const nowUs = () => Number(process.hrtime.bigint() / 1000n);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let stop = false;

function pickMs(name) {
  const [low, high] = setting(`${name}_MS`).split("-").map(Number);
  return low + Math.floor(Math.random() * (high - low + 1));
}

// Writes one line of the history; returns the last word of the answer, the value of the register.
async function say(event, fields) {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`);
  const answer = await answers.next();
  if (answer.done) process.exit(1); // the harness is gone
  return Number(answer.value.split(" ").pop());
}

function ask([host, port], command) {
  return new Promise((resolve) => {
    const node = net.connect({ host, port }, () => node.write(`${command}\r\n`));
    const done = (reply) => { node.destroy(); resolve(String(reply) === "+OK\r\n"); };
    node.setTimeout(100, done).on("data", done).on("error", done);
  });
}

// The number of nodes that say yes.
const everywhere = (command) => Promise.all(nodes.map((node) => ask(node, command)))
  .then((answered) => answered.filter((yes) => yes).length);

async function operate(key, owner, leaseMs, holdMs) {
  await say("invoke", { key });
  const endUs = nowUs() + leaseMs * 990 - 2000; // less what clocks may differ by
  if (await everywhere(`SET ${key} ${owner} NX PX ${leaseMs}`) > nodes.length / 2 && nowUs() < endUs) {
    await say("granted", { key, deadline_us: endUs });
    const untilUs = Math.min(endUs, nowUs() + holdMs * 1000);
    for (let value = await say("read", { key }); nowUs() < untilUs && !stop; await sleep(10)) {
      await say("write", { key, value: ++value });
    }
    await say(nowUs() < endUs ? "released" : "lost", { key }); // before any node hears of it
  } else await say("refused", { key, status: "HELD" });
  await everywhere(`EVAL "${RELEASE}" 1 ${key} ${owner}`);
}

process.on("SIGTERM", () => { stop = true; });
(async () => {
  await say("hello", { version: 1, program: "example.js" });
  for (; !stop; await sleep(pickMs("THINK"))) {
    const key = keys[Math.floor(Math.random() * keys.length)];
    await operate(key, randomBytes(8).toString("hex"), pickMs("LEASE"), pickMs("HOLD"));
  }
  process.exit(0);
})();
