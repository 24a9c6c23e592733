// SPDX-License-Identifier: BSD-3-Clause

// Locks of bsm/redislock, which uses one server, as a chaos client.
//
// As careful as it lets its user be: TTL, as in its example, is looked at before each access, and asks the server; the
// lease counts from before the call, less the drift; Refresh at half of the lease. go-redis gets time limits and no retries.
package main

import (
	"context"
	"math/rand"
	"net"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

type redislockLock struct {
	*redislock.Lock
	lease time.Duration
	until time.Time
}

func (l *redislockLock) Until() time.Time { return l.until }

func (l *redislockLock) Extend() bool {
	until := end(l.lease)
	if l.Refresh(context.Background(), l.lease, nil) != nil {
		return false
	}
	l.until = until
	return true
}

// Where the server does not answer, the clock must do.
func (l *redislockLock) IsGone() bool {
	left, err := l.TTL(context.Background())
	return err == nil && left == 0
}

func (l *redislockLock) Unlock() { _ = l.Release(context.Background()) }

func end(lease time.Duration) time.Time {
	return time.Now().Add(lease - lease/100 - 2*time.Millisecond)
}

func takesRedislock(address string) func(string, time.Duration, int) heldLock {
	client := redislock.New(goredis.NewClient(&goredis.Options{
		Addr: address, DialTimeout: answerLimit, ReadTimeout: answerLimit, WriteTimeout: answerLimit, MaxRetries: -1,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			return fromSource().DialContext(ctx, network, address)
		},
	}))
	return func(key string, lease time.Duration, tries int) heldLock {
		for {
			until := end(lease)
			if lock, err := client.Obtain(context.Background(), key, lease, nil); err == nil {
				return &redislockLock{lock, lease, until}
			}
			if tries--; tries <= 0 {
				return nil
			}
			time.Sleep(time.Duration(50+rand.Intn(200)) * time.Millisecond) // as redsync
		}
	}
}
