// SPDX-License-Identifier: BSD-3-Clause
"use strict";
// A peer of scripts/bench, by the orders of tests/bench/programs.py; usage: node bench.js NODE...
const fs = require("fs");
const readline = require("readline");
const { default: Redis } = require("ioredis");
const { default: Redlock } = require("redlock");

const LEASE_MS = 30000;
const clients = process.argv.slice(2).map((node) => {
  const [host, port] = node.split(":");
  const client = new Redis({ host, port: Number(port) });
  client.on("error", () => {});
  return client;
});
const redlock = new Redlock(clients, { retryCount: 0 });
const nowUs = () => Number(process.hrtime.bigint() / 1000n);

async function cycles(key, untilUs, all) {
  for (let begunUs = nowUs(); begunUs < untilUs; begunUs = nowUs()) {
    try {
      const lock = await redlock.acquire([key], LEASE_MS);
      all.latencies.push(nowUs() - begunUs);
      await lock.release();
      all.locks += 1;
    } catch {
      all.failed += 1;
    }
  }
}

async function measure(inFlight, ms, prefix) {
  const all = { locks: 0, failed: 0, latencies: [] };
  const cpu = process.cpuUsage();
  const begunUs = nowUs();
  await Promise.all(Array.from({ length: inFlight }, (_, i) => cycles(prefix + i, begunUs + ms * 1000, all)));
  const seconds = (nowUs() - begunUs) / 1e6;
  const { user, system } = process.cpuUsage(cpu);
  const sorted = Float64Array.from(all.latencies).sort();
  const quantile = (share) => (sorted.length ? sorted[Math.floor((sorted.length - 1) * share)] : 0);
  process.stdout.write(`${JSON.stringify({
    locks: all.locks, failed: all.failed, seconds, cpu_s: (user + system) / 1e6,
    p50_us: quantile(0.5), p99_us: quantile(0.99), p999_us: quantile(0.999),
  })}\n`);
}

function die(error) {
  process.stderr.write(`${error.stack || error}\n`);
  process.exit(1);
}

async function main() {
  await Promise.all(clients.map((client) => client.ping()));
  const installed = fs.readFileSync(`${__dirname}/node_modules/redlock/package.json`, "utf8");
  process.stdout.write(`ready node-redlock ${JSON.parse(installed).version}\n`);
  let last = Promise.resolve();
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const [inFlight, ms, prefix] = line.split(" ");
    last = last.then(() => measure(Number(inFlight), Number(ms), prefix)).catch(die);
  }).on("close", () => last.then(() => process.exit(0)));
}

main().catch(die);
