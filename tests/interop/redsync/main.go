// SPDX-License-Identifier: BSD-3-Clause

// A peer of the interoperation tests: locks of redsync, by orders on stdin. The orders and events are those of
// ours.c; usage: peer NODE... (or, for chaos.go: peer chaos [NAME]; for bench.go: peer bench NODE...)
//
//	SLOT extend    extended | failed TEXT
package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
)

const (
	counterDigits = 12
	holdMS        = 2
	thinkMSMax    = 40 // between two turns of a contention test, at random
	forever       = 1 << 30
)

type slot struct {
	name   string
	orders chan []string
	mutex  *redsync.Mutex
}

var (
	locks    *redsync.Redsync
	printing sync.Mutex
)

func say(name, format string, arguments ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, arguments...), "\n", " ")
	printing.Lock()
	defer printing.Unlock()
	fmt.Printf("%s %s\n", name, text)
}

func die(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func milliseconds(word string) time.Duration {
	value, err := strconv.Atoi(word)
	if err != nil {
		die("%v", err)
	}
	return time.Duration(value) * time.Millisecond
}

func mutexFor(key string, lease time.Duration, tries int) *redsync.Mutex {
	return locks.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(tries))
}

func (s *slot) acquire(key string, lease, wait time.Duration) {
	tries := 1
	background := context.Background()
	if wait > 0 {
		limited, cancel := context.WithTimeout(background, wait)
		defer cancel()
		background, tries = limited, forever
	}
	s.mutex = mutexFor(key, lease, tries)
	if err := s.mutex.LockContext(background); err != nil {
		say(s.name, "refused %v", err)
	} else {
		say(s.name, "acquired %s", s.mutex.Value())
	}
}

func (s *slot) release() {
	if ok, err := s.mutex.Unlock(); ok {
		say(s.name, "released")
	} else {
		say(s.name, "failed %v", err)
	}
}

func (s *slot) extend() {
	if ok, err := s.mutex.Extend(); ok {
		say(s.name, "extended")
	} else {
		say(s.name, "failed %v", err)
	}
}

// One turn inside: reads the number, takes its time, writes the next. False where the lock did not last.
func increment(counter *os.File, until time.Time) bool {
	text := make([]byte, counterDigits)
	if _, err := counter.ReadAt(text, 0); err != nil {
		die("%v", err)
	}
	value, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		die("%v", err)
	}
	time.Sleep(holdMS * time.Millisecond)
	if !time.Now().Before(until) {
		return false
	}
	if _, err := counter.WriteAt([]byte(fmt.Sprintf("%0*d", counterDigits, value+1)), 0); err != nil {
		die("%v", err)
	}
	return true
}

// As contention.c has it: one write a line, for others append to the file too.
func (s *slot) trace(file *os.File, what, owner string) {
	now := time.Now()
	line := fmt.Sprintf("%d.%06d %s %s theirs %s\n", now.Unix(), now.Nanosecond()/1000, s.name, what, owner)
	if _, err := file.WriteString(line); err != nil {
		die("%v", err)
	}
}

// With redsync's own pauses between its tries. Without a key: without the lock.
func (s *slot) contend(key string, lease time.Duration, path string, length time.Duration) {
	turns, late := 0, 0
	end := time.Now().Add(length)
	limited, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	counter, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		die("%v", err)
	}
	defer counter.Close()
	trace, err := os.OpenFile(path+".trace", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		die("%v", err)
	}
	defer trace.Close()
	for time.Now().Before(end) {
		until, owner := end.Add(time.Hour), "-"
		var mutex *redsync.Mutex
		if key != "" {
			mutex = mutexFor(key, lease, forever)
			if mutex.LockContext(limited) != nil {
				continue
			}
			until, owner = mutex.Until(), mutex.Value()
		}
		s.trace(trace, "enter", owner)
		if increment(counter, until) {
			turns++
			s.trace(trace, "leave", owner)
		} else {
			late++
			s.trace(trace, "late", owner)
		}
		if mutex != nil {
			_, _ = mutex.Unlock()
		}
		time.Sleep(time.Duration(rand.Intn(thinkMSMax+1)) * time.Millisecond)
	}
	say(s.name, "contended %d %d", turns, late)
}

func (s *slot) obey(words []string) {
	switch {
	case words[0] == "acquire" && len(words) == 4:
		s.acquire(words[1], milliseconds(words[2]), milliseconds(words[3]))
	case words[0] == "release":
		s.release()
	case words[0] == "extend":
		s.extend()
	case words[0] == "contend" && len(words) == 5:
		s.contend(words[1], milliseconds(words[2]), words[3], milliseconds(words[4]))
	case words[0] == "bare" && len(words) == 5:
		s.contend("", 0, words[3], milliseconds(words[4]))
	default:
		die("no such order: %v", words)
	}
}

func (s *slot) run() {
	for words := range s.orders {
		s.obey(words)
	}
}

func connect(address string) pools.Pool {
	return redigo.NewPool(&redis.Pool{
		MaxIdle: 4096,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", address)
		},
	})
}

func version(name string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if strings.Contains(strings.Replace(module.Path, "/", "-", -1), name) {
				return module.Version
			}
		}
	}
	return "unknown"
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "chaos" {
		chaos()
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "bench" {
		bench(os.Args[2:])
		return
	}
	var nodes []pools.Pool
	for _, address := range os.Args[1:] {
		nodes = append(nodes, connect(address))
	}
	locks = redsync.New(nodes...)
	rand.Seed(time.Now().UnixNano())
	say("-", "ready redsync %s", version("redsync"))
	slots := map[string]*slot{}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words := strings.Fields(input.Text())
		if len(words) < 2 {
			die("an order is 'SLOT VERB ...'")
		}
		s := slots[words[0]]
		if s == nil {
			s = &slot{name: words[0], orders: make(chan []string, 16)}
			slots[words[0]] = s
			go s.run()
		}
		s.orders <- words[1:]
	}
}
