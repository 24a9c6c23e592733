// SPDX-License-Identifier: BSD-3-Clause
// go run lock.go KEY: holds a lock until it is lost, takes it again, and releases it
package main

// #cgo LDFLAGS: -lquorlock
// #include <poll.h>
// #include <quorlock/sync.h>
import "C"

import (
	"fmt"
	"os"
)

var failure C.struct_quorlock_error
var client *C.quorlock_sync_client
var lock *C.quorlock_sync_lock
var event = C.struct_quorlock_event{size: C.sizeof_struct_quorlock_event}
var poll = C.struct_pollfd{events: C.POLLIN}

func check(status C.int) {
	if status != 0 {
		panic(C.GoString(C.quorlock_status_text(status)) + ": " + C.GoString(&failure.text[0]))
	}
}

// In a goroutine of its own it takes one thread.
func wait(kind C.int) string {
	for {
		if event._type == C.QUORLOCK_EVENT_NONE {
			C.poll(&poll, 1, -1)
		}
		check(C.quorlock_sync_client_next_event(client, &event))
		if event._type == kind {
			return C.GoString(&event.text[0])
		}
	}
}

func acquire() {
	check(C.quorlock_sync_lock_start_acquire(lock, nil, nil))
	fmt.Println(wait(C.QUORLOCK_EVENT_ACQUIRE_ENDED))
	check(event.status)
}

func main() {
	var settings *C.quorlock_settings
	options := C.struct_quorlock_client_options{size: C.sizeof_struct_quorlock_client_options}
	key := C.CString(os.Args[1])
	check(C.quorlock_settings_load(&settings, nil, nil, &failure))
	check(C.quorlock_settings_options(settings, &options, &failure))
	check(C.quorlock_sync_client_new(&client, &options, &failure))
	check(C.quorlock_sync_client_events(client, &poll.fd))
	check(C.quorlock_sync_lock_new(&lock, client, &key, 1, nil, &failure))
	acquire()
	fmt.Println(wait(C.QUORLOCK_EVENT_LOST))
	acquire()
	check(C.quorlock_sync_lock_start_release(lock, nil, nil))
	fmt.Println(wait(C.QUORLOCK_EVENT_RELEASE_ENDED))
	C.quorlock_sync_lock_free(lock)
	check(C.quorlock_sync_client_close(client))
	wait(C.QUORLOCK_EVENT_CLOSED)
}
