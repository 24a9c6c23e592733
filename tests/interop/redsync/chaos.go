// SPDX-License-Identifier: BSD-3-Clause

// A chaos client with locks of redsync, or of bsm/redislock on the first server alone: peer chaos NAME, started by
// cluster/chaos --client; quorlock-chaos(7) has the lines.
//
// As careful as redsync lets its user be: NewMutex with its own drift and timeout factors; Until, which its
// documentation names in place of Valid, is looked at before each access; Extend at half of the lease; no
// WithSetNXOnExtend, for a lock that is gone may be another's meanwhile. redigo gets time limits, without which
// one frozen server would stop everything. redislock: one_server.go.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
)

const (
	clockMonotonic = 1
	answerLimit    = 100 * time.Millisecond
	retryMean      = 150 * time.Millisecond // redsync draws 50 to 250 ms
)

type fields map[string]any

type chaosClient struct {
	answers *bufio.Scanner
	stop    chan os.Signal
	take    func(key string, lease time.Duration, tries int) heldLock // nil: it is another's
}

type heldLock interface {
	Until() time.Time
	Extend() bool
	IsGone() bool // as the lock says when it is asked
	Unlock()
}

type redsyncLock struct{ *redsync.Mutex }

func (l redsyncLock) Extend() bool {
	ok, _ := l.Mutex.Extend()
	return ok
}

func (l redsyncLock) IsGone() bool { return false }
func (l redsyncLock) Unlock()      { _, _ = l.Mutex.Unlock() }

func takesRedsync(nodes []string) func(string, time.Duration, int) heldLock {
	var all []pools.Pool
	for _, address := range nodes {
		all = append(all, chaosPool(address))
	}
	locks := redsync.New(all...)
	return func(key string, lease time.Duration, tries int) heldLock {
		mutex := locks.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(tries))
		if mutex.Lock() != nil {
			return nil
		}
		return redsyncLock{mutex}
	}
}

func told(name string) string { return os.Getenv("QUORLOCK_CHAOS_" + name) }

func pick(name string) time.Duration {
	var low, high int
	if _, err := fmt.Sscanf(told(name+"_MS"), "%d-%d", &low, &high); err != nil {
		die("%s: %v", name, err)
	}
	return time.Duration(low+rand.Intn(high-low+1)) * time.Millisecond
}

func oneIn(times int) bool { return rand.Intn(times) == 0 }

// CLOCK_MONOTONIC, which Go's own clock does not show.
func nowUs() int64 {
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano() / 1000
}

// The same moment by the clock of the history; too early, never too late, where this process stops in between.
func us(at time.Time) int64 {
	now := nowUs()
	return now + time.Until(at).Microseconds()
}

func (c *chaosClient) say(event, key string, more fields) (accepted bool, value uint64) {
	line := fields{"event": event, "t_us": nowUs()}
	if key != "" {
		line["key"] = key
	}
	for name, field := range more {
		line[name] = field
	}
	text, err := json.Marshal(line)
	if err != nil {
		die("%v", err)
	}
	fmt.Printf("%s\n", text)
	if !c.answers.Scan() {
		die("the harness is gone")
	}
	words := strings.Fields(c.answers.Text())
	value, _ = strconv.ParseUint(words[len(words)-1], 10, 64)
	return words[0] == "ok", value
}

func fromSource() *net.Dialer {
	return &net.Dialer{Timeout: answerLimit, LocalAddr: &net.TCPAddr{IP: net.ParseIP(told("SOURCE"))}}
}

func chaosPool(address string) pools.Pool {
	dialer := fromSource()
	return redigo.NewPool(&redis.Pool{
		MaxIdle: 8,
		Dial: func() (redis.Conn, error) {
			return redis.Dial("tcp", address, redis.DialNetDial(dialer.Dial), redis.DialReadTimeout(answerLimit),
				redis.DialWriteTimeout(answerLimit))
		},
	})
}

// Reads first, writes what follows from it later, while the lock is valid. The status of a loss.
func (c *chaosClient) hold(lock heldLock, key string, lease, length time.Duration) string {
	end := time.Now().Add(length)
	next, written := uint64(0), false
	for time.Now().Before(end) && len(c.stop) == 0 {
		if time.Until(lock.Until()) < lease/2 && lock.Extend() {
			c.say("renewed", key, fields{"deadline_us": us(lock.Until())})
		}
		if lock.IsGone() {
			return "GONE"
		}
		if !time.Now().Before(lock.Until()) {
			return "EXPIRED"
		}
		if written {
			c.say("write", key, fields{"value": next})
			next++
		} else {
			_, value := c.say("read", key, nil)
			next, written = value+1, true
		}
		time.Sleep(time.Duration(2+rand.Intn(30)) * time.Millisecond)
	}
	if time.Now().Before(lock.Until()) {
		return ""
	}
	return "EXPIRED"
}

func (c *chaosClient) operate(key string) {
	lease, length, tries := pick("LEASE"), pick("HOLD"), 1
	if !oneIn(6) {
		tries += int(pick("WAIT") / retryMean)
	}
	if oneIn(10) {
		length += lease + lease/2 // a job longer than its lease, which lives by Extend
	}
	c.say("invoke", key, nil)
	lock := c.take(key, lease, tries)
	granted := nowUs()
	if lock == nil {
		c.say("refused", key, fields{"status": "HELD"})
		return
	}
	if !time.Now().Before(lock.Until()) {
		c.say("refused", key, fields{"status": "LATE"})
	} else {
		c.say("granted", key, fields{"t_us": granted, "deadline_us": us(lock.Until())})
		if why := c.hold(lock, key, lease, length); why == "" {
			c.say("released", key, nil)
		} else {
			c.say("lost", key, fields{"status": why})
		}
	}
	lock.Unlock()
}

func chaos() {
	c := chaosClient{answers: bufio.NewScanner(os.Stdin), stop: make(chan os.Signal, 1)}
	signal.Notify(c.stop, syscall.SIGTERM)
	seed, _ := strconv.ParseInt(told("SEED"), 10, 64)
	rand.Seed(seed)
	nodes, name := strings.Split(told("NODES"), ","), "redsync"
	if len(os.Args) > 2 && os.Args[2] == "bsm-redislock" {
		name, c.take = "bsm-redislock", takesRedislock(nodes[0])
	} else {
		c.take = takesRedsync(nodes)
	}
	keys := strings.Split(told("KEYS"), ",")
	c.say("hello", "", fields{"version": 1, "program": name + " " + version(name)})
	for ; len(c.stop) == 0; time.Sleep(pick("THINK")) {
		c.operate(keys[rand.Intn(len(keys))])
	}
}
