# SPDX-License-Identifier: BSD-3-Clause
# ruby lock.rb KEY: holds a lock until it is lost, takes it again, and releases it
require "fiddle/import"

module Q
  extend Fiddle::Importer
  dlload "libquorlock.so"
  Event = struct ["size_t size", "int type", "int status", "void *handle", "void *arg", "long long fence_and_term[2]",
                  "int numbers[8]", "int reason", "int level", "int state", "long long n_dropped", "char text[1400]", "char token[128]"]
  NONE, CLOSED, LOG, LOST, ACQUIRE_ENDED, RELEASE_ENDED = *0..5 # enum quorlock_event_type
  extern "int quorlock_settings_load(void *, void *, void *, void *)"
  extern "int quorlock_settings_options(void *, void *, void *)"
  extern "int quorlock_sync_client_new(void *, void *, void *)"
  extern "int quorlock_sync_client_events(void *, void *)"
  extern "int quorlock_sync_client_next_event(void *, void *)"
  extern "int quorlock_sync_client_close(void *)"
  extern "int quorlock_sync_lock_new(void *, void *, void *, size_t, void *, void *)"
  extern "int quorlock_sync_lock_start_acquire(void *, void *, void *)"
  extern "int quorlock_sync_lock_start_release(void *, void *, void *)"
  extern "void quorlock_sync_lock_free(void *)"
end

def check(status, text = nil) = status.zero? || raise("status #{status} #{text}")

$failure = "\0" * 516                               # struct quorlock_error
settings, client, lock, fd = Array.new(4) { "\0" * 8 }
options = [512].pack("J").ljust(512, "\0")          # struct quorlock_client_options is smaller: zeros are the default
check Q.quorlock_settings_load(settings, nil, nil, $failure), $failure[4..]
check Q.quorlock_settings_options(settings.unpack1("J"), options, $failure), $failure[4..]
check Q.quorlock_sync_client_new(client, options, $failure), $failure[4..]
$client = client.unpack1("J")
check Q.quorlock_sync_client_events($client, fd)
$fd = IO.for_fd(fd.unpack1("l"), autoclose: false) # it belongs to the library
check Q.quorlock_sync_lock_new(lock, $client, [ARGV[0]].pack("p"), 1, nil, $failure), $failure[4..]
$lock = lock.unpack1("J")
$event = Q::Event.malloc(Fiddle::RUBY_FREE)
$event.to_ptr[0, Q::Event.size] = [Q::Event.size].pack("J").ljust(Q::Event.size, "\0")

def wait(kind)
  loop do
    IO.select([$fd]) if $event.type == Q::NONE # other threads of Ruby run meanwhile
    check Q.quorlock_sync_client_next_event($client, $event)
    return $event.text.pack("c*").unpack1("Z*") if $event.type == kind
  end
end

def acquire
  check Q.quorlock_sync_lock_start_acquire($lock, nil, nil)
  puts wait(Q::ACQUIRE_ENDED)
  check $event.status
end

$stdout.sync = true
acquire
puts wait(Q::LOST)
acquire
check Q.quorlock_sync_lock_start_release($lock, nil, nil)
puts wait(Q::RELEASE_ENDED)
Q.quorlock_sync_lock_free($lock)
check Q.quorlock_sync_client_close($client)
wait(Q::CLOSED)
