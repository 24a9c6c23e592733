// SPDX-License-Identifier: BSD-3-Clause

// A client for cluster/chaos. quorlock-chaos(7) describes its lines. Its lock is a plain SET NX PX on a majority.
//
//	go build example.go; cluster/chaos --client ./example
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const release = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])"

var (
	nodes   = strings.Split(setting("NODES"), ",")
	keys    = strings.Split(setting("KEYS"), ",")
	answers = bufio.NewScanner(os.Stdin)
	stop    = make(chan os.Signal, 1)
	// Go does not call the C library, so it binds its sockets to the client's address itself.
	dialer = net.Dialer{Timeout: 100 * time.Millisecond, LocalAddr: &net.TCPAddr{IP: net.ParseIP(setting("SOURCE"))}}
)

func setting(name string) string { return os.Getenv("QUORLOCK_CHAOS_" + name) }

func pick(name string) time.Duration {
	var low, high int
	fmt.Sscanf(setting(name+"_MS"), "%d-%d", &low, &high)
	return time.Duration(low+rand.Intn(high-low+1)) * time.Millisecond
}

// Writes one line of the history; returns its time and the value of the register.
func say(format string, arguments ...any) (us, value int64) {
	fmt.Printf(format+"\n", arguments...)
	if !answers.Scan() {
		os.Exit(1) // the harness is gone
	}
	verdict := ""
	fmt.Sscan(answers.Text(), &verdict, &us, &value)
	return us, value
}

// The number of nodes that say yes.
func everywhere(format string, arguments ...any) (votes int) {
	for _, address := range nodes {
		node, err := dialer.Dial("tcp", address)
		if err != nil {
			continue
		}
		node.SetDeadline(time.Now().Add(dialer.Timeout))
		fmt.Fprintf(node, format+"\r\n", arguments...)
		if reply, _ := bufio.NewReader(node).ReadString('\n'); reply == "+OK\r\n" {
			votes++
		}
		node.Close()
	}
	return votes
}

func operate(key, owner string, lease, hold time.Duration, clock func(time.Time) int64) {
	say(`{"event":"invoke","key":"%s"}`, key)
	end := time.Now().Add(lease*99/100 - 2*time.Millisecond) // less what clocks may differ by
	votes := everywhere("SET %s %s NX PX %d", key, owner, lease.Milliseconds())
	if votes > len(nodes)/2 && time.Now().Before(end) {
		say(`{"event":"granted","key":"%s","deadline_us":%d}`, key, clock(end))
		_, value := say(`{"event":"read","key":"%s"}`, key)
		for until := time.Now().Add(hold); time.Now().Before(until) && time.Now().Before(end) && len(stop) == 0; {
			value++
			say(`{"event":"write","key":"%s","value":%d}`, key, value)
			time.Sleep(10 * time.Millisecond)
		}
		event := "lost"
		if time.Now().Before(end) {
			event = "released" // before any node hears of it
		}
		say(`{"event":"%s","key":"%s"}`, event, key)
	} else {
		say(`{"event":"refused","key":"%s","status":"HELD"}`, key)
	}
	everywhere(`EVAL "%s" 1 %s %s`, release, key, owner)
}

func main() {
	signal.Notify(stop, syscall.SIGTERM)
	helloUs, _ := say(`{"event":"hello","version":1,"program":"example.go"}`)
	then := time.Now()
	// Go hides CLOCK_MONOTONIC: what the first answer said it was, and the time since then.
	clock := func(at time.Time) int64 { return helloUs + at.Sub(then).Microseconds() }
	for turn := 0; len(stop) == 0; turn++ {
		owner := fmt.Sprintf("%s-%s-%d", setting("CLIENT"), setting("SEED"), turn)
		operate(keys[rand.Intn(len(keys))], owner, pick("LEASE"), pick("HOLD"), clock)
		time.Sleep(pick("THINK"))
	}
}
