// SPDX-License-Identifier: BSD-3-Clause

// A miniredis on an address, with what quorlock-servers(7) says it needs: main ADDRESS [bare]
package main

import (
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

func main() {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(os.Args) == 2 {
		m.ClockTTL(true)
		info := "redis_version:7.2.0\r\nrun_id:" + fmt.Sprintf("%040x", m.Port()) + "\r\nrole:master\r\nmaster_replid:" +
			fmt.Sprintf("%040x", os.Getpid()) + "\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\nloading:0\r\n"
		m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
			if cmd == "INFO" {
				c.WriteBulk(info)
			}
			return cmd == "INFO"
		})
	}
	select {}
}
