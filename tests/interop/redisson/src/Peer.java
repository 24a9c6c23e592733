// SPDX-License-Identifier: BSD-3-Clause

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A peer of the interoperation tests: locks of Redisson, by orders on stdin. The orders and events are those of
 * ours.c, with the kind of lock as one word more; usage: Peer WATCHDOG_MS NODE...
 *
 * <pre>
 * SLOT acquire KEY LEASE_MS WAIT_MS KIND      lease 0: its watchdog renews; acquired OWNER... | refused TEXT
 * SLOT held                                   held COUNT: how often this slot has it, by its own word
 * SLOT force KEY                              forced N: RLock.forceUnlock on each server; how many had a lock
 * SLOT see KEY                                seen N: on how many servers RLock.isLocked
 * </pre>
 *
 * KIND is redlock, multilock, rlock (one RLock on each server, all of them or none) or rlock0, rlock1...: on that
 * server only; fair, read and write likewise: RFairLock, and the two of RReadWriteLock. OWNER is what Redisson
 * writes as the field of an RLock, one for each server.
 */
public final class Peer {
    private static final int COUNTER_DIGITS = 12;
    private static final int HOLD_MS = 2;
    private static final int THINK_MS_MAX = 40; // between two turns of a contention test, at random
    private static final long FIGHT_WAIT_MS_MIN = 1000; // also right before its end
    // Redisson sends again, and takes back, what was not answered in time; the first may be executed last.
    private static final int ANSWER_MS_MAX = 20_000;

    private static final List<RedissonClient> CLIENTS = new ArrayList<>();

    private static synchronized void say(String name, Object... words) {
        StringBuilder line = new StringBuilder(name);
        for (Object word : words) line.append(' ').append(word);
        System.out.println(line.toString().replace('\n', ' '));
        System.out.flush();
    }

    /** One contender; a thread of its own, for to Redisson a thread is the owner. */
    private static final class Slot {
        final String name;
        final ExecutorService thread = Executors.newSingleThreadExecutor();
        List<RLock> locks = List.of();

        Slot(String name) {
            this.name = name;
        }

        void order(String[] words) {
            thread.execute(() -> {
                try {
                    obey(words);
                } catch (Throwable e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
        }

        private void obey(String[] words) throws Exception {
            switch (words[1]) {
                case "acquire":
                    acquire(words[2], Long.parseLong(words[3]), Long.parseLong(words[4]), words[5]);
                    break;
                case "release":
                    release();
                    break;
                case "held":
                    say(name, "held", locks.get(0).getHoldCount());
                    break;
                case "force":
                    say(name, "forced", count(words[2], true));
                    break;
                case "see":
                    say(name, "seen", count(words[2], false));
                    break;
                case "contend":
                    contend(words[2], Long.parseLong(words[3]), words[4], Long.parseLong(words[5]), words[6]);
                    break;
                case "bare":
                    contend(null, 3_600_000, words[4], Long.parseLong(words[5]), null);
                    break;
                default:
                    throw new IllegalArgumentException("no such order: " + words[1]);
            }
        }

        private void acquire(String key, long leaseMs, long waitMs, String kind) throws Exception {
            List<RLock> wanted = locksFor(key, kind);
            try {
                if (take(wanted, waitMs, leaseMs > 0 ? leaseMs : -1).isPresent()) {
                    locks = wanted;
                    String number = ":" + Thread.currentThread().getId();
                    say(name, "acquired", CLIENTS.stream().map(c -> c.getId() + number)
                            .reduce((a, b) -> a + " " + b).get());
                } else {
                    say(name, "refused", "false");
                }
            } catch (org.redisson.client.RedisException e) {
                say(name, "refused", e.getMessage());
            }
        }

        private void release() {
            try {
                for (RLock lock : locks) lock.unlock();
                say(name, "released");
            } catch (IllegalMonitorStateException e) {
                say(name, "failed", e.getMessage());
            }
        }

        private int count(String key, boolean force) {
            int count = 0;
            for (RedissonClient client : CLIENTS) {
                RLock lock = client.getLock(key);
                if (force ? lock.forceUnlock() : lock.isLocked()) count++;
            }
            return count;
        }

        /** As contention.c has it: one write a line, for others append to the file too. */
        private void trace(OutputStream trace, String what, String kind) throws Exception {
            Instant now = Instant.now();
            trace.write(String.format("%d.%06d %s %s %s %d%n", now.getEpochSecond(), now.getNano() / 1000, name, what,
                    kind, Thread.currentThread().getId()).getBytes(StandardCharsets.US_ASCII));
        }

        /**
         * No key: without the lock. Redisson tells no validity, so this is as careful as its user can be: of several
         * RLocks the first lasts shortest, for the others may have been waited for; and a RedLock or MultiLock takes
         * its locks for twice the wait, and lengthens them when it has them without a look at whether they are there.
         */
        private void contend(String key, long leaseMs, String path, long lengthMs, String kind) throws Exception {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(lengthMs);
            int turns = 0;
            int late = 0;
            List<RLock> wanted = key == null ? List.of() : locksFor(key, kind);
            try (RandomAccessFile counter = new RandomAccessFile(path, "rw");
                 OutputStream trace = Files.newOutputStream(Path.of(path + ".trace"), StandardOpenOption.APPEND)) {
                for (long begun = System.nanoTime(); begun < end; begun = System.nanoTime()) {
                    long waitMs = Math.max(FIGHT_WAIT_MS_MIN, TimeUnit.NANOSECONDS.toMillis(end - begun));
                    OptionalLong since = take(wanted, waitMs, leaseMs);
                    if (since.isEmpty()) continue;
                    long until = Math.min(since.getAsLong() + TimeUnit.MILLISECONDS.toNanos(leaseMs) / 2,
                            begun + TimeUnit.MILLISECONDS.toNanos(2 * waitMs));
                    if (turn(counter, trace, kind, until)) turns++;
                    else late++;
                    unlock(wanted);
                    Thread.sleep(ThreadLocalRandom.current().nextInt(THINK_MS_MAX + 1));
                }
            }
            say(name, "contended", turns, late);
        }

        /** False where the locks may be over: then the counter is left alone. */
        private boolean turn(RandomAccessFile counter, OutputStream trace, String kind, long until) throws Exception {
            if (System.nanoTime() >= until) return false;
            trace(trace, "enter", kind == null ? "bare" : kind);
            boolean made = increment(counter, until);
            trace(trace, made ? "leave" : "late", kind == null ? "bare" : kind);
            return made;
        }
    }

    private static List<RLock> locksFor(String key, String kind) {
        String name = kind.replaceAll("[0-9]", "");
        RLock[] each = CLIENTS.stream().map(client -> lockOf(client, key, name)).toArray(RLock[]::new);
        switch (name) {
            case "redlock":
                return List.of(new RedissonRedLock(each));
            case "multilock":
                return List.of(new RedissonMultiLock(each));
            default:
                String number = kind.substring(name.length());
                return number.isEmpty() ? Arrays.asList(each) : List.of(each[Integer.parseInt(number)]);
        }
    }

    private static RLock lockOf(RedissonClient client, String key, String name) {
        switch (name) {
            case "fair":
                return client.getFairLock(key);
            case "read":
                return client.getReadWriteLock(key).readLock();
            case "write":
                return client.getReadWriteLock(key).writeLock();
            default:
                return client.getLock(key);
        }
    }

    /** All of them or none, each within what is left of the wait: since when they are held, or empty. */
    private static OptionalLong take(List<RLock> locks, long waitMs, long leaseMs) throws InterruptedException {
        long begun = System.nanoTime();
        long since = begun;
        for (int i = 0; i < locks.size(); i++) {
            long leftMs = Math.max(0, waitMs - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begun));
            if (!locks.get(i).tryLock(leftMs, leaseMs, TimeUnit.MILLISECONDS)) {
                unlock(locks.subList(0, i));
                return OptionalLong.empty();
            }
            if (i == 0) since = System.nanoTime();
        }
        return OptionalLong.of(since);
    }

    private static void unlock(List<RLock> locks) {
        for (RLock lock : locks) {
            try {
                lock.unlock();
            } catch (IllegalMonitorStateException e) {
                System.err.println("not ours any more: " + e.getMessage());
            }
        }
    }

    /** One turn inside: reads the number, takes its time, writes the next. False where the lock did not last. */
    private static boolean increment(RandomAccessFile counter, long until) throws Exception {
        byte[] text = new byte[COUNTER_DIGITS];
        counter.seek(0);
        counter.readFully(text);
        long value = Long.parseLong(new String(text, StandardCharsets.US_ASCII));
        Thread.sleep(HOLD_MS);
        if (System.nanoTime() >= until) return false;
        counter.seek(0);
        counter.write(String.format("%0" + COUNTER_DIGITS + "d", value + 1).getBytes(StandardCharsets.US_ASCII));
        return true;
    }

    private static RedissonClient connect(String node, long watchdogMs) {
        Config config = new Config();
        config.setLockWatchdogTimeout(watchdogMs).setThreads(4).setNettyThreads(4).setCodec(StringCodec.INSTANCE);
        config.useSingleServer().setAddress("redis://" + node).setTimeout(ANSWER_MS_MAX).setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(32).setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(4);
        return Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        for (int i = 1; i < args.length; i++) CLIENTS.add(connect(args[i], Long.parseLong(args[0])));
        Map<String, Slot> slots = new HashMap<>();
        say("-", "ready", "redisson", Redisson.class.getPackage().getImplementationVersion());
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                slots.computeIfAbsent(words[0], Slot::new).order(words);
            }
        }
        System.exit(0);
    }
}
