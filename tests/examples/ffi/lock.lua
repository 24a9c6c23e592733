-- SPDX-License-Identifier: BSD-3-Clause
-- luajit lock.lua HEADER KEY: holds a lock until it is lost, takes it again, and releases it
local ffi = require("ffi")
ffi.cdef(assert(io.open(arg[1])):read("*a"))
ffi.cdef("struct pollfd { int fd; short events, revents; }; int poll(struct pollfd *, unsigned long, int);")
local quorlock = ffi.load("quorlock")

local failure = ffi.new("struct quorlock_error")
local function check(status)
    if status ~= 0 then error(ffi.string(quorlock.quorlock_status_text(status)) .. ": " .. ffi.string(failure.text)) end
end

local settings, client, lock = ffi.new("quorlock_settings *[1]"), ffi.new("quorlock_sync_client *[1]"), ffi.new("quorlock_sync_lock *[1]")
local options = ffi.new("struct quorlock_client_options", {size = ffi.sizeof("struct quorlock_client_options")})
local event = ffi.new("struct quorlock_event", {size = ffi.sizeof("struct quorlock_event")})
local fd, keys = ffi.new("int[1]"), ffi.new("const char *[1]", {arg[2]})

local function wait(kind) -- for an event of this kind; an event loop would wait for the descriptor
    repeat
        if event.type == quorlock.QUORLOCK_EVENT_NONE then ffi.C.poll(ffi.new("struct pollfd", {fd[0], 1}), 1, -1) end
        check(quorlock.quorlock_sync_client_next_event(client[0], event))
    until event.type == kind
    return ffi.string(event.text)
end

local function acquire()
    check(quorlock.quorlock_sync_lock_start_acquire(lock[0], nil, nil))
    print(wait(quorlock.QUORLOCK_EVENT_ACQUIRE_ENDED))
    check(event.status)
end

check(quorlock.quorlock_settings_load(settings, nil, nil, failure))
check(quorlock.quorlock_settings_options(settings[0], options, failure))
check(quorlock.quorlock_sync_client_new(client, options, failure))
check(quorlock.quorlock_sync_client_events(client[0], fd))
check(quorlock.quorlock_sync_lock_new(lock, client[0], keys, 1, nil, failure))
io.stdout:setvbuf("line")
acquire()
print(wait(quorlock.QUORLOCK_EVENT_LOST))
acquire()
check(quorlock.quorlock_sync_lock_start_release(lock[0], nil, nil))
print(wait(quorlock.QUORLOCK_EVENT_RELEASE_ENDED))
quorlock.quorlock_sync_lock_free(lock[0])
check(quorlock.quorlock_sync_client_close(client[0]))
wait(quorlock.QUORLOCK_EVENT_CLOSED)
