// SPDX-License-Identifier: BSD-3-Clause

package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
)

const benchLeaseMS = 30000

// What one goroutine, or all of them, did.
type work struct {
	locks, failed int
	latencies     []time.Duration // from the call of Lock to its return
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		die("%v", err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func cycles(key string, until time.Time) work {
	var done work
	mutex := locks.NewMutex(key, redsync.WithExpiry(benchLeaseMS*time.Millisecond), redsync.WithTries(1))
	for begun := time.Now(); begun.Before(until); begun = time.Now() {
		if mutex.Lock() != nil {
			done.failed++
			continue
		}
		done.latencies = append(done.latencies, time.Since(begun))
		if ok, _ := mutex.Unlock(); ok {
			done.locks++
		} else {
			done.failed++
		}
	}
	return done
}

func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(float64(len(sorted)-1)*share)].Nanoseconds()) / 1e3
}

func measure(inFlight int, span time.Duration, prefix string) {
	var all work
	var gathering sync.Mutex
	var group sync.WaitGroup
	cpu, begun := cpuSeconds(), time.Now()
	for i := 0; i < inFlight; i++ {
		group.Add(1)
		go func(key string) {
			defer group.Done()
			done := cycles(key, begun.Add(span))
			gathering.Lock()
			defer gathering.Unlock()
			all.locks += done.locks
			all.failed += done.failed
			all.latencies = append(all.latencies, done.latencies...)
		}(prefix + strconv.Itoa(i))
	}
	group.Wait()
	seconds := time.Since(begun).Seconds()
	cpu = cpuSeconds() - cpu
	sort.Slice(all.latencies, func(i, k int) bool { return all.latencies[i] < all.latencies[k] })
	fmt.Printf("{\"locks\": %d, \"failed\": %d, \"seconds\": %.6f, \"cpu_s\": %.6f, \"p50_us\": %.3f, \"p99_us\": %.3f, "+
		"\"p999_us\": %.3f}\n", all.locks, all.failed, seconds, cpu, quantile(all.latencies, 0.5),
		quantile(all.latencies, 0.99), quantile(all.latencies, 0.999))
}

// A peer of scripts/bench, by the orders of tests/bench/programs.py; usage: peer bench NODE...
func bench(addresses []string) {
	var nodes []pools.Pool
	for _, address := range addresses {
		nodes = append(nodes, connect(address))
	}
	locks = redsync.New(nodes...)
	fmt.Printf("ready redsync %s\n", version("redsync"))
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		words := strings.Fields(input.Text())
		if len(words) != 3 {
			die("an order is 'IN_FLIGHT MS PREFIX'")
		}
		inFlight, err := strconv.Atoi(words[0])
		if err != nil {
			die("%v", err)
		}
		measure(inFlight, milliseconds(words[1]), words[2])
	}
}
