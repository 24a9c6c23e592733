<?php // SPDX-License-Identifier: BSD-3-Clause
// php -d ffi.enable=1 lock.php HEADER KEY: holds a lock until it is lost, takes it again, and releases it
$q = FFI::cdef(file_get_contents($argv[1]), "libquorlock.so");
$libc = FFI::cdef("struct pollfd { int fd; short events; short revents; }; int poll(struct pollfd *, unsigned long, int);");
$failure = $q->new("struct quorlock_error");
[$settings, $client, $lock] = [$q->new("quorlock_settings *"), $q->new("quorlock_sync_client *"), $q->new("quorlock_sync_lock *")];
[$options, $event] = [$q->new("struct quorlock_client_options"), $q->new("struct quorlock_event")];
[$options->size, $event->size] = [FFI::sizeof($options), FFI::sizeof($event)];
[$fd, $keys, $key] = [$q->new("int"), $q->new("const char *[1]"), $q->new("char[" . strlen($argv[2]) + 1 . "]")];
FFI::memcpy($key, $argv[2], strlen($argv[2]));
$keys[0] = FFI::addr($key[0]);

function check(int $status): void {
    global $q, $failure;
    if ($status !== 0) throw new Exception($q->quorlock_status_text($status) . ": " . FFI::string($failure->text));
}

function wait(int $kind): string { // for an event of this kind
    global $q, $libc, $client, $event, $fd;
    $poll = $libc->new("struct pollfd");
    [$poll->fd, $poll->events] = [$fd->cdata, 1];
    do {
        if ($event->type === $q->QUORLOCK_EVENT_NONE) $libc->poll(FFI::addr($poll), 1, -1);
        check($q->quorlock_sync_client_next_event($client, FFI::addr($event)));
    } while ($event->type !== $kind);
    return FFI::string($event->text);
}

function acquire(): void {
    global $q, $lock, $event;
    check($q->quorlock_sync_lock_start_acquire($lock, null, null));
    echo wait($q->QUORLOCK_EVENT_ACQUIRE_ENDED), "\n";
    check($event->status);
}

check($q->quorlock_settings_load(FFI::addr($settings), null, null, FFI::addr($failure)));
check($q->quorlock_settings_options($settings, FFI::addr($options), FFI::addr($failure)));
check($q->quorlock_sync_client_new(FFI::addr($client), FFI::addr($options), FFI::addr($failure)));
check($q->quorlock_sync_client_events($client, FFI::addr($fd)));
check($q->quorlock_sync_lock_new(FFI::addr($lock), $client, $keys, 1, null, FFI::addr($failure)));
acquire();
echo wait($q->QUORLOCK_EVENT_LOST), "\n";
acquire();
check($q->quorlock_sync_lock_start_release($lock, null, null));
echo wait($q->QUORLOCK_EVENT_RELEASE_ENDED), "\n";
$q->quorlock_sync_lock_free($lock);
check($q->quorlock_sync_client_close($client));
wait($q->QUORLOCK_EVENT_CLOSED);
