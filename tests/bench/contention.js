// SPDX-License-Identifier: BSD-3-Clause
"use strict";
// The same work as bench_contention.c, and the same words on stdin and stdout, by node-redlock with its own
// defaults: a try every 200 ms, or up to 100 ms later or sooner.
// usage: node contention.js HOW HOLD_US THINK_US TASKS LEASE_MS NODE...; NODE_PATH names the folder of its packages
//
// HOW is `patient`: only that it never gives up is said to it. Between its tries it keeps the votes that it got,
// and refuses itself with them, so that many block one another until their leases end. Or `anew`: each try is an
// acquire of its own, which ends with a release, and the pauses between them are made here.
const { default: Redis } = require("ioredis");
const { default: Redlock } = require("redlock");

const patient = process.argv[2] === "patient";
const [holdUs, thinkUs, tasks, leaseMs] = process.argv.slice(3, 7).map(Number);
const nodes = process.argv.slice(7);
const RETRY_MS = 200;
const JITTER_MS = 100;
const now = () => process.hrtime.bigint(); // CLOCK_MONOTONIC in nanoseconds
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const turns = [];
let failed = 0;

function connect() {
  const clients = nodes.map((node) => {
    const [host, port] = node.split(":");
    const client = new Redis({ host, port: Number(port) });
    client.on("error", () => {});
    return client;
  });
  return { clients, redlock: new Redlock(clients, { retryCount: patient ? -1 : 0, retryDelay: RETRY_MS, retryJitter: JITTER_MS }) };
}

async function contend({ redlock }, key, end) {
  while (now() < end) {
    const lock = await redlock.acquire([key], leaseMs).catch(() => null);
    if (!lock) {
      failed += 1;
      await sleep(RETRY_MS + (2 * Math.random() - 1) * JITTER_MS);
      continue;
    }
    const granted = now();
    await sleep(holdUs / 1000);
    const release = now();
    await lock.release().catch(() => {});
    turns.push(`turn ${granted} ${release} ${now()} ${lock.attempts.length}`);
    if (thinkUs) await sleep(thinkUs / 1000);
  }
}

async function obey(line, connected) {
  const [key, begin, end] = line.split(" ");
  const span = BigInt(end) - BigInt(begin);
  await sleep(Math.max(0, Number(BigInt(begin) - now()) / 1e6));
  // A waiter at the end would wait for a whole lease and longer, so it is not waited for.
  setTimeout(() => {
    process.stdout.write(turns.concat(`failed ${failed}`, "").join("\n"), () => process.exit(0));
  }, Number(span) / 1e6 + 50);
  for (const each of connected) contend(each, key, BigInt(end));
}

async function main() {
  const connected = Array.from({ length: tasks }, connect);
  await Promise.all(connected.flatMap((each) => each.clients.map((client) => client.ping())));
  await connected[0].redlock.acquire([`warm:${process.pid}`], 1000).then((lock) => lock.release());
  process.stdin.once("data", (data) => obey(String(data).trim(), connected));
  process.stdout.write("ready\n");
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
