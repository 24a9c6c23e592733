// SPDX-License-Identifier: BSD-3-Clause

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A client for cluster/chaos. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.
 *
 * <p>cluster/chaos --client 'java -XX:-UsePerfData Example.java'
 */
public final class Example {
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));
    private static final String RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])";
    private static final String[] NODES = setting("NODES").split(",");
    private static final String[] KEYS = setting("KEYS").split(",");
    private static volatile boolean stop;

    private static String setting(String name) {
        return System.getenv("QUORLOCK_CHAOS_" + name);
    }

    private static long pickMs(String name) {
        String[] range = setting(name + "_MS").split("-");
        return ThreadLocalRandom.current().nextLong(Long.parseLong(range[0]), Long.parseLong(range[1]) + 1);
    }

    private static long nowUs() {
        return System.nanoTime() / 1000; // CLOCK_MONOTONIC
    }

    /** Writes one line of the history; returns the last word of the answer, the value of the register. */
    private static long say(String event, String fields) throws IOException {
        System.out.println("{\"event\":\"" + event + "\"," + fields + "}");
        String answer = ANSWERS.readLine();
        if (answer == null) Runtime.getRuntime().halt(1); // the harness is gone
        return Long.parseLong(answer.substring(answer.lastIndexOf(' ') + 1));
    }

    /** The number of nodes that say yes. */
    private static int everywhere(String command) {
        int votes = 0;
        for (String node : NODES) {
            try (Socket socket = new Socket()) {
                socket.setSoTimeout(100);
                socket.connect(new InetSocketAddress(node.split(":")[0], Integer.parseInt(node.split(":")[1])), 100);
                socket.getOutputStream().write((command + "\r\n").getBytes());
                if ("+OK".equals(new BufferedReader(new InputStreamReader(socket.getInputStream())).readLine())) votes++;
            } catch (IOException e) {
                continue;
            }
        }
        return votes;
    }

    private static void operate(String name, String owner, long leaseMs, long holdMs) throws Exception {
        String key = "\"key\":\"" + name + "\"";
        say("invoke", key);
        long endUs = nowUs() + leaseMs * 990 - 2000; // less what clocks may differ by
        if (everywhere("SET " + name + " " + owner + " NX PX " + leaseMs) > NODES.length / 2 && nowUs() < endUs) {
            say("granted", key + ",\"deadline_us\":" + endUs);
            long untilUs = Math.min(endUs, nowUs() + holdMs * 1000);
            for (long value = say("read", key) + 1; nowUs() < untilUs && !stop; value++) {
                say("write", key + ",\"value\":" + value);
                Thread.sleep(10);
            }
            say(nowUs() < endUs ? "released" : "lost", key); // before any node hears of it
        } else {
            say("refused", key + ",\"status\":\"HELD\"");
        }
        everywhere("EVAL \"" + RELEASE + "\" 1 " + name + " " + owner);
    }

    public static void main(String[] args) throws Exception {
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> stop = true);
        say("hello", "\"version\":1,\"program\":\"Example.java\"");
        for (; !stop; Thread.sleep(pickMs("THINK"))) {
            String key = KEYS[ThreadLocalRandom.current().nextInt(KEYS.length)];
            operate(key, UUID.randomUUID().toString(), pickMs("LEASE"), pickMs("HOLD"));
        }
    }
}
