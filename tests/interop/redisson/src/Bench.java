// SPDX-License-Identifier: BSD-3-Clause

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

import com.sun.management.OperatingSystemMXBean;

import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A peer of scripts/bench, by the orders of tests/bench/programs.py; usage: Bench redlock|multilock NODE...
 *
 * To Redisson a thread is the owner, so each lock under way has a thread.
 */
public final class Bench {
    private static final long LEASE_MS = 30_000;
    private static final List<RedissonClient> CLIENTS = new ArrayList<>();

    /** One lock that is taken and given back until the time is over. */
    private static final class Worker extends Thread {
        final RLock lock;
        final long untilNs;
        long locks, failed;
        long[] latenciesNs = new long[1024];
        int count;

        Worker(RLock lock, long untilNs) {
            this.lock = lock;
            this.untilNs = untilNs;
        }

        @Override
        public void run() {
            for (long begun = System.nanoTime(); begun < untilNs; begun = System.nanoTime()) {
                try {
                    if (!lock.tryLock(0, LEASE_MS, TimeUnit.MILLISECONDS)) {
                        failed++;
                        continue;
                    }
                    if (count == latenciesNs.length) latenciesNs = Arrays.copyOf(latenciesNs, 2 * count);
                    latenciesNs[count++] = System.nanoTime() - begun;
                    lock.unlock();
                    locks++;
                } catch (InterruptedException | RuntimeException e) {
                    failed++;
                }
            }
        }
    }

    private static RLock lockFor(String kind, String key) {
        RLock[] each = CLIENTS.stream().map(client -> client.getLock(key)).toArray(RLock[]::new);
        return kind.equals("multilock") ? new RedissonMultiLock(each) : new RedissonRedLock(each);
    }

    private static long cpuNs() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static double quantileUs(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) ((sorted.length - 1) * share)] / 1e3;
    }

    private static void measure(String kind, int inFlight, long ms, String prefix) throws InterruptedException {
        List<Worker> workers = new ArrayList<>();
        long cpu = cpuNs();
        long begun = System.nanoTime();
        for (int i = 0; i < inFlight; i++)
            workers.add(new Worker(lockFor(kind, prefix + i), begun + TimeUnit.MILLISECONDS.toNanos(ms)));
        for (Worker worker : workers) worker.start();
        for (Worker worker : workers) worker.join();
        double seconds = (System.nanoTime() - begun) / 1e9;
        double cpuS = (cpuNs() - cpu) / 1e9;
        long[] sorted = workers.stream().flatMapToLong(w -> Arrays.stream(w.latenciesNs, 0, w.count)).sorted().toArray();
        System.out.println(String.format(Locale.ROOT, "{\"locks\": %d, \"failed\": %d, \"seconds\": %.6f, \"cpu_s\": %.6f, "
                + "\"p50_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f}",
                workers.stream().mapToLong(w -> w.locks).sum(), workers.stream().mapToLong(w -> w.failed).sum(), seconds,
                cpuS, quantileUs(sorted, 0.5), quantileUs(sorted, 0.99), quantileUs(sorted, 0.999)));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) {
            Config config = new Config();
            config.setCodec(StringCodec.INSTANCE);
            config.useSingleServer().setAddress("redis://" + args[i]).setTimeout(20_000);
            CLIENTS.add(Redisson.create(config));
        }
        System.out.println("ready Redisson " + Redisson.class.getPackage().getImplementationVersion() + " " + args[0]);
        System.out.flush();
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                measure(args[0], Integer.parseInt(words[0]), Long.parseLong(words[1]), words[2]);
            }
        }
        System.exit(0);
    }
}
