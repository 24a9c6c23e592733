#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# gopher-lua 1.1.2, the Lua of miniredis: `x = t.a and y` leaves the local x as it was where t.a is nil or false. By the
# manual of Lua 5.1 (2.5.3), `and` returns its first operand then, so x becomes nil or false. A script for Redis that
# counts on that is right on each server, and wrong in tests against this double.
set -euo pipefail

command -v go >/dev/null || {
    echo 'this needs go' >&2
    exit 77
}
made=$(mktemp -d)
trap 'chmod -R u+w "$made"; rm -rf "$made"' EXIT
cd "$made"
export GOPATH="$made/go" GOCACHE="$made/cache" GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

func main() {
	state := lua.NewState()
	defer state.Close()
	if err := state.DoString(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}
GO
go mod init example >/dev/null 2>&1
go get github.com/yuin/gopher-lua@v1.1.2 >/dev/null 2>&1
go build -o lua . >/dev/null 2>&1
echo "gopher-lua $(go list -m -f '{{.Version}}' github.com/yuin/gopher-lua)"

# shows WANTED SEEN PROGRAM: by the manual the program prints WANTED; this version prints SEEN.
status=0
shows() {
    local printed
    printed=$(./lua "$3")
    printf '%s\n    expected %s, seen %s\n' "$3" "$1" "$printed"
    if [ "$printed" != "$2" ]; then status=1; fi
}
shows nil old 'local t, x = {}, "old"   x = t.a and "new"   print(x)'
shows nil old 'local t, x = {}, "old"   x = t.a and x   print(x)'
shows false old 'local f, x = function() return false end, "old"   x = f() and "new"   print(x)'
shows nil nil 'local t = {}   local x = t.a and "new"   print(x)'
shows false false 'local n, x = 0, "old"   x = n > 0 and "new"   print(x)'
[ "$status" = 0 ] || echo 'this has changed'
exit "$status"
