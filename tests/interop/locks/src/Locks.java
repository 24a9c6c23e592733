// SPDX-License-Identifier: BSD-3-Clause

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** Locks of Maven's packages by the orders of locks.py: Locks CLIENT NODE... */
final class Locks {
    public static void main(String[] arguments) throws Exception {
        String[] node = arguments[1].split(":");
        LettuceConnectionFactory factory = new LettuceConnectionFactory(node[0], Integer.parseInt(node[1]));
        factory.afterPropertiesSet();
        factory.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        Lock lock = null;
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("give")) {
                lock.unlock();
                System.out.println("given");
                continue;
            }
            RedisLockRegistry registry = new RedisLockRegistry(factory, "registry", Long.parseLong(words[2]));
            registry.setRedisLockType(arguments[0].endsWith("PUB_SUB") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
            lock = registry.obtain(words[1]);
            boolean got = true;
            if (words[0].equals("wait")) {
                lock.lock();
            } else {
                got = lock.tryLock();
            }
            System.out.println(got ? "yes" : "no");
        }
        System.exit(0);
    }
}
