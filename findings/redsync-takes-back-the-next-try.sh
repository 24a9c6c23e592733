#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# redsync 4.18.1: all tries of one Lock have the same value. What takes a failed try back can arrive late, as after a
# partition; it then deletes the lock that the next try got, and another client gets it at once. With a value for each
# try, the late request would find a value that is not its own. Three Redis; two of them are behind a link that loses the
# first request of a Lock, and delivers what takes it back when Lock has returned. Its mutex is valid then, so that no
# other may get the lock.
set -euo pipefail

for tool in go redis-server; do
    command -v "$tool" >/dev/null || {
        echo "this needs $tool" >&2
        exit 77
    }
done
made=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || :; wait; chmod -R u+w "$made"; rm -rf "$made"' EXIT
cd "$made"
export GOPATH="$made/go" GOCACHE="$made/cache" GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0
for node in 1 2 3; do
    redis-server --port 0 --unixsocket "$made/$node.sock" --save '' --appendonly no --logfile "$made/$node.log" &
done
cat >main.go <<'GO'
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
)

var (
	isBlack atomic.Bool           // for connections that are made now
	late    = make(chan struct{}) // closed: what was kept back is delivered
)

// A link to the node: of the connections that are made while it is black, the first loses what is sent, and the others
// deliver it late, though their client has given up.
func link(node string) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for lost := false; ; {
			client, err := listener.Accept()
			check(err)
			black := isBlack.Load()
			if black && !lost {
				lost = true
				go io.Copy(io.Discard, client)
				continue
			}
			go func() {
				server, err := net.Dial("unix", node)
				check(err)
				go io.Copy(client, server)
				sent := make(chan []byte, 1000)
				go func() {
					for {
						bytes := make([]byte, 4096)
						n, err := client.Read(bytes)
						if err != nil {
							close(sent)
							return
						}
						sent <- bytes[:n]
					}
				}()
				if black {
					<-late
				}
				for bytes := range sent {
					server.Write(bytes)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func pool(network, address string) pools.Pool {
	const limit = 100 * time.Millisecond
	return redigo.NewPool(&redis.Pool{Dial: func() (redis.Conn, error) {
		return redis.Dial(network, address, redis.DialReadTimeout(limit), redis.DialWriteTimeout(limit))
	}})
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func main() {
	locks := redsync.New(pool("tcp", link("1.sock")), pool("tcp", link("2.sock")), pool("unix", "3.sock"))
	before := locks.NewMutex("job")
	check(before.Lock()) // the nodes know the scripts from now on
	if _, err := before.Unlock(); err != nil {
		check(err)
	}
	isBlack.Store(true)
	first := locks.NewMutex("job", redsync.WithExpiry(20*time.Second), redsync.WithTries(2),
		redsync.WithRetryDelayFunc(func(int) time.Duration { isBlack.Store(false); return time.Millisecond }))
	check(first.Lock())
	close(late)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if locks.NewMutex("job", redsync.WithExpiry(20*time.Second), redsync.WithTries(1)).Lock() == nil {
			fmt.Printf("two owners; the first is valid for %d s more\n", int(time.Until(first.Until()).Seconds()))
			return
		}
	}
	fmt.Println("one owner")
}
GO
go mod init example >/dev/null 2>&1
go get github.com/go-redsync/redsync/v4@v4.18.1 github.com/gomodule/redigo@v1.9.3 >/dev/null 2>&1
go build -o lock . >/dev/null 2>&1
echo "redsync $(go list -m -f '{{.Version}}' github.com/go-redsync/redsync/v4), $(redis-server --version | cut -d' ' -f1-3)"
seen=$(./lock)
printf 'expected one owner, seen: %s\n' "$seen"
case $seen in
'two owners; '*) ;;
*)
    echo 'this has changed'
    exit 1
    ;;
esac
