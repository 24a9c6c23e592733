// SPDX-License-Identifier: BSD-3-Clause
// For every Go from 1.19 on; newer.mod has the newest redsync for a Go that can build it.
module quorlock/interop/redsync

go 1.19

require (
	github.com/bsm/redislock v0.9.4
	github.com/go-redsync/redsync/v4 v4.9.4
	github.com/gomodule/redigo v1.8.9
	github.com/redis/go-redis/v9 v9.0.3
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
)
