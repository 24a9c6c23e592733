// SPDX-License-Identifier: BSD-3-Clause

// A chaos client with locks of rslock, started by cluster/chaos --client; quorlock-chaos(7) has the lines.
//
// As careful as rslock lets its user be: one try a call, because its extend takes the lock back from the nodes before it
// tries again; the lease counts from before the call, less the drift, and the clock is looked at before each access. A
// failed extend is a loss. It waits for every node, by its default up to 500 ms, which it lets nobody change.
use std::io::{stdin, Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use rslock::{Lock, LockManager};
use tokio::runtime::Runtime;

fn setting(name: &str) -> String {
    env::var(format!("QUORLOCK_CHAOS_{name}")).unwrap_or_default()
}

fn list(name: &str) -> Vec<String> {
    setting(name).split(',').map(str::to_string).collect()
}

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

struct Client {
    runtime: Runtime,
    manager: LockManager,
    stop: bool,
    random: fs::File,
    // Rust hides CLOCK_MONOTONIC: what the first answer said it was, and when that came.
    hello: Option<(Instant, u64)>,
}

impl Client {
    fn draw(&mut self, low: u64, high: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.read_exact(&mut bytes).unwrap();
        low + u64::from_ne_bytes(bytes) % (high - low + 1)
    }

    fn pick(&mut self, name: &str) -> Duration {
        let range = setting(&format!("{name}_MS"));
        let (low, high) = range.split_once('-').unwrap();
        ms(self.draw(low.parse().unwrap(), high.parse().unwrap()))
    }

    // Writes one line of the history; returns its time and the value of the register.
    fn say(&mut self, event: &str, more: String) -> (u64, u64) {
        println!("{{\"event\":\"{event}\"{more}}}");
        std::io::stdout().flush().unwrap();
        let mut answer = String::new();
        if stdin().read_line(&mut answer).unwrap_or(0) == 0 {
            process::exit(1); // the harness is gone
        }
        self.stop |= answer.trim_end().ends_with(" stop");
        let numbers: Vec<u64> = answer
            .split(' ')
            .filter_map(|word| word.trim().parse().ok())
            .collect();
        (numbers[0], *numbers.last().unwrap())
    }

    fn say_of(&mut self, event: &str, key: &str, more: String) -> u64 {
        self.say(event, format!(",\"key\":\"{key}\"{more}")).1
    }

    fn deadline(&self, end: Instant) -> String {
        let (then, then_us) = self.hello.unwrap();
        format!(
            ",\"deadline_us\":{}",
            then_us + end.duration_since(then).as_micros() as u64
        )
    }

    // With the end of the lock.
    fn acquire(&mut self, key: &str, lease: Duration, wait: Duration) -> Option<(Lock, Instant)> {
        let give_up = Instant::now() + wait;
        loop {
            let end = Instant::now() + lease * 99 / 100 - ms(2);
            if let Ok(lock) = self.runtime.block_on(self.manager.lock(key, lease)) {
                return Some((lock, end));
            }
            if Instant::now() >= give_up || self.stop {
                return None;
            }
            sleep(ms(self.draw(0, 200))); // as its own tries
        }
    }

    // Reads first, writes what follows from it later. The lock as it is then, and the status of a loss.
    fn hold(
        &mut self,
        key: &str,
        mut lock: Lock,
        mut end: Instant,
        lease: Duration,
        length: Duration,
    ) -> (Lock, &'static str) {
        let (until, mut next) = (Instant::now() + length, 0);
        while Instant::now() < until && !self.stop {
            let now = Instant::now();
            if now < end && end - now < lease / 2 {
                match self.runtime.block_on(self.manager.extend(&lock, lease)) {
                    Ok(extended) => lock = extended,
                    Err(_) => return (lock, "EXTEND"),
                }
                end = now + lease * 99 / 100 - ms(2);
                let deadline = self.deadline(end);
                self.say_of("renewed", key, deadline);
            }
            if Instant::now() >= end {
                return (lock, "EXPIRED");
            }
            next = match next {
                0 => self.say_of("read", key, String::new()) + 1,
                value => self.say_of("write", key, format!(",\"value\":{value}")) + 1,
            };
            sleep(ms(self.draw(2, 31)));
        }
        (lock, if Instant::now() < end { "" } else { "EXPIRED" })
    }

    fn operate(&mut self, key: &str) {
        let lease = self.pick("LEASE");
        let wait = if self.draw(1, 6) == 1 {
            ms(0)
        } else {
            self.pick("WAIT")
        };
        // Now and then a job longer than its lease, which lives by extend.
        let length = self.pick("HOLD")
            + if self.draw(1, 10) == 1 {
                lease * 3 / 2
            } else {
                ms(0)
            };
        self.say_of("invoke", key, String::new());
        let Some((lock, end)) = self.acquire(key, lease, wait) else {
            self.say_of("refused", key, ",\"status\":\"HELD\"".to_string());
            return;
        };
        let deadline = self.deadline(end);
        self.say_of("granted", key, deadline);
        let (lock, why) = self.hold(key, lock, end, lease, length);
        match why {
            "" => self.say_of("released", key, String::new()),
            _ => self.say_of("lost", key, format!(",\"status\":\"{why}\"")),
        };
        self.runtime.block_on(lock.release());
    }
}

fn main() {
    let mut manager = LockManager::new(
        list("NODES")
            .iter()
            .map(|node| format!("redis://{node}/"))
            .collect(),
    );
    manager.set_retry(1, ms(200));
    let (keys, mut me) = (
        list("KEYS"),
        Client {
            runtime: Runtime::new().unwrap(),
            manager,
            stop: false,
            random: fs::File::open("/dev/urandom").unwrap(), // once: a fault leaves no descriptor later
            hello: None,
        },
    );
    // The standard library knows no signals.
    let hello = me.say(
        "hello",
        ",\"version\":1,\"program\":\"rslock 0.10.0\",\"stop\":\"answer\"".to_string(),
    );
    me.hello = Some((Instant::now(), hello.0));
    while !me.stop {
        let key = me.draw(0, keys.len() as u64 - 1) as usize;
        me.operate(&keys[key]);
        sleep(me.pick("THINK"));
    }
}
