// SPDX-License-Identifier: BSD-3-Clause

// A client for cluster/chaos. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.
//
// rustc example.rs; cluster/chaos --client ./example
use std::io::{stdin, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, process};

const RELEASE: &str = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])";
const PATIENCE: Option<Duration> = Some(Duration::from_millis(100));

fn setting(name: &str) -> String {
    env::var(format!("QUORLOCK_CHAOS_{name}")).unwrap_or_default()
}

fn list(name: &str) -> Vec<String> {
    setting(name).split(',').map(str::to_string).collect()
}

struct Client {
    stop: bool,
    random: u64,
    // Rust hides CLOCK_MONOTONIC: what the first answer said it was, and when that came.
    hello: Option<(Instant, u64)>,
}

impl Client {
    // Below the limit; xorshift.
    fn draw(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    fn pick(&mut self, name: &str) -> Duration {
        let range = setting(&format!("{name}_MS"));
        let ends: Vec<u64> = range.split('-').map(|end| end.parse().unwrap()).collect();
        Duration::from_millis(ends[0] + self.draw(ends[1] - ends[0] + 1))
    }

    // Writes one line of the history; returns its time and the value of the register.
    fn say(&mut self, event: &str, more: String) -> (u64, u64) {
        println!("{{\"event\":\"{event}\"{more}}}");
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

    fn work(&mut self, key: &str, end: Instant) {
        let (then, then_us) = self.hello.unwrap();
        let end_us = then_us + end.duration_since(then).as_micros() as u64;
        self.say(
            "granted",
            format!(",\"key\":\"{key}\",\"deadline_us\":{end_us}"),
        );
        let (_, mut value) = self.say("read", format!(",\"key\":\"{key}\""));
        let until = end.min(Instant::now() + self.pick("HOLD"));
        while Instant::now() < until && !self.stop {
            value += 1;
            self.say("write", format!(",\"key\":\"{key}\",\"value\":{value}"));
            sleep(Duration::from_millis(10));
        }
        let event = if Instant::now() < end {
            "released"
        } else {
            "lost"
        };
        self.say(event, format!(",\"key\":\"{key}\"")); // before any node hears of it
    }

    fn operate(&mut self, key: &str) {
        let (lease, owner) = (self.pick("LEASE"), self.draw(u64::MAX));
        self.say("invoke", format!(",\"key\":\"{key}\""));
        let end = Instant::now() + lease * 99 / 100 - Duration::from_millis(2); // less what clocks may differ by
        let votes = everywhere(&format!(
            "SET {key} {owner} NX PX {}\r\n",
            lease.as_millis()
        ));
        if votes > list("NODES").len() / 2 && Instant::now() < end {
            self.work(key, end);
        } else {
            self.say("refused", format!(",\"key\":\"{key}\",\"status\":\"HELD\""));
        }
        everywhere(&format!("EVAL \"{RELEASE}\" 1 {key} {owner}\r\n"));
    }
}

fn ask(node: &str, command: &str) -> std::io::Result<bool> {
    let address = node.to_socket_addrs()?.next().unwrap();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE.unwrap())?;
    stream.set_read_timeout(PATIENCE)?;
    stream.write_all(command.as_bytes())?;
    let mut reply = [0; 100];
    let length = stream.read(&mut reply)?;
    Ok(reply[..length] == *b"+OK\r\n")
}

// The number of nodes that say yes.
fn everywhere(command: &str) -> usize {
    list("NODES")
        .iter()
        .filter(|node| ask(node, command).unwrap_or(false))
        .count()
}

fn main() {
    let random = setting("SEED").parse::<u64>().unwrap() | 1 << 60; // the generator must not begin with 0
    let (keys, mut me) = (
        list("KEYS"),
        Client {
            stop: false,
            random,
            hello: None,
        },
    );
    // The standard library knows no signals.
    let hello = me.say(
        "hello",
        ",\"version\":1,\"program\":\"example.rs\",\"stop\":\"answer\"".to_string(),
    );
    me.hello = Some((Instant::now(), hello.0));
    while !me.stop {
        let key = me.draw(keys.len() as u64) as usize;
        me.operate(&keys[key]);
        sleep(me.pick("THINK"));
    }
}
