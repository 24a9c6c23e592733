// SPDX-License-Identifier: BSD-3-Clause

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Random;
import java.util.concurrent.TimeUnit;

import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A chaos client with locks of Redisson, started by cluster/chaos --client; quorlock-chaos(7) has the lines. Usage:
 * Chaos redlock|multilock
 *
 * <p>As careful as Redisson lets its user be: one Redisson instance a server, tryLock with a lease time, after which
 * "the lock will be released automatically", so that its user may look at the clock before each access. It tells no
 * validity: the lease counts from the return of tryLock, less the drift that Redlock asks for. Without a lease time
 * its watchdog renews, but tells nobody when it cannot, and the owner would believe in the lock for ever. Its limits
 * and retries are the defaults; a server that is down when the client starts must not end it, hence the lazy start.
 */
public final class Chaos {
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));
    private static final String[] KEYS = told("KEYS").split(",");
    private static final Random RANDOM = new Random(Long.parseLong(told("SEED")));

    private static volatile boolean stop;

    private final RedissonClient[] clients;
    private final boolean majority;

    private Chaos(RedissonClient[] clients, boolean majority) {
        this.clients = clients;
        this.majority = majority;
    }

    private static String told(String name) {
        return System.getenv("QUORLOCK_CHAOS_" + name);
    }

    private static int pickMs(String name) {
        String[] range = told(name + "_MS").split("-");
        int low = Integer.parseInt(range[0]);
        return low + RANDOM.nextInt(Integer.parseInt(range[1]) - low + 1);
    }

    private static long nowUs() {
        return System.nanoTime() / 1000; // CLOCK_MONOTONIC
    }

    /** One line with its time; the last word of the answer. */
    private static long say(long us, String event, String more) throws IOException {
        System.out.println("{\"event\":\"" + event + "\",\"t_us\":" + us + more + "}");
        String answer = ANSWERS.readLine();
        if (answer == null) Runtime.getRuntime().halt(1); // the harness is gone
        return Long.parseLong(answer.substring(answer.lastIndexOf(' ') + 1));
    }

    private RLock lockOf(String key) {
        RLock[] each = new RLock[clients.length];
        for (int i = 0; i < clients.length; i++) each[i] = clients[i].getLock(key);
        return majority ? new RedissonRedLock(each) : new RedissonMultiLock(each);
    }

    private static void unlock(RLock lock) {
        try {
            lock.unlock();
        } catch (RuntimeException e) {
            System.err.println("unlock: " + e.getMessage());
        }
    }

    /** Reads first, writes what follows from it later. False: the lease is over. */
    private static boolean hold(String key, long deadlineUs, long untilUs) throws Exception {
        long next = -1;
        while (nowUs() < untilUs && !stop) {
            if (nowUs() >= deadlineUs) return false;
            if (next < 0) {
                next = say(nowUs(), "read", key) + 1;
            } else {
                say(nowUs(), "write", key + ",\"value\":" + next++);
            }
            Thread.sleep(2 + RANDOM.nextInt(30));
        }
        return nowUs() < deadlineUs;
    }

    private void operate(String name) throws Exception {
        String key = ",\"key\":\"" + name + "\"";
        int leaseMs = pickMs("LEASE");
        int waitMs = RANDOM.nextInt(6) == 0 ? 0 : pickMs("WAIT");
        RLock lock = lockOf(name);
        String why = "HELD";
        boolean held = false;
        say(nowUs(), "invoke", key);
        try {
            held = lock.tryLock(waitMs, leaseMs, TimeUnit.MILLISECONDS);
        } catch (RuntimeException e) {
            why = "ERROR"; // a server that does not answer
        }
        long grantedUs = nowUs();
        if (!held) {
            say(grantedUs, "refused", key + ",\"status\":\"" + why + "\"");
            return;
        }
        long deadlineUs = grantedUs + leaseMs * 990L - 2000;
        say(grantedUs, "granted", key + ",\"deadline_us\":" + deadlineUs);
        boolean valid = hold(key, deadlineUs, grantedUs + pickMs("HOLD") * 1000L);
        say(nowUs(), valid ? "released" : "lost", valid ? key : key + ",\"status\":\"EXPIRED\"");
        unlock(lock);
    }

    private static RedissonClient connect(String node) {
        Config config = new Config();
        config.setLazyInitialization(true).setThreads(2).setNettyThreads(2);
        config.useSingleServer().setAddress("redis://" + node).setConnectionMinimumIdleSize(1).setConnectionPoolSize(8)
                .setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(2);
        return Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 1 || !args[0].matches("redlock|multilock")) {
            System.err.println("usage: Chaos redlock|multilock");
            System.exit(64);
        }
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> stop = true);
        String[] nodes = told("NODES").split(",");
        RedissonClient[] clients = new RedissonClient[nodes.length];
        for (int i = 0; i < nodes.length; i++) clients[i] = connect(nodes[i]);
        Chaos chaos = new Chaos(clients, args[0].equals("redlock"));
        String version = Redisson.class.getPackage().getImplementationVersion();
        say(nowUs(), "hello", ",\"version\":1,\"program\":\"Redisson " + version + " " + args[0] + "\"");
        for (; !stop; Thread.sleep(pickMs("THINK"))) chaos.operate(KEYS[RANDOM.nextInt(KEYS.length)]);
        System.exit(0);
    }
}
