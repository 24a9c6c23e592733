// SPDX-License-Identifier: BSD-3-Clause
// rustc lock.rs && ./lock KEY: holds a lock until it is lost, takes it again, and releases it
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Event { size: usize, kind: c_int, status: c_int, handle: *const c_void, arg: *mut c_void, fence: u64, term: u64, numbers: [u32; 8],
    reason: c_int, level: c_int, state: c_int, n_dropped: u64, text: [c_char; 1400], token: [c_char; 128] }
#[repr(C)]
struct Failure { status: c_int, text: [c_char; 512] }
#[repr(C)]
struct Poll { fd: c_int, events: i16, revents: i16 }
const NONE: c_int = 0; // enum quorlock_event_type
const CLOSED: c_int = 1;
const LOST: c_int = 3;
const ACQUIRE_ENDED: c_int = 4;
const RELEASE_ENDED: c_int = 5;
type Ptr = *mut c_void;

#[link(name = "quorlock")]
extern "C" {
    fn quorlock_settings_load(settings: *mut Ptr, file: *const c_char, set: *const c_char, failure: *mut Failure) -> c_int;
    fn quorlock_settings_options(settings: Ptr, options: *mut usize, failure: *mut Failure) -> c_int;
    fn quorlock_sync_client_new(client: *mut Ptr, options: *const usize, failure: *mut Failure) -> c_int;
    fn quorlock_sync_client_events(client: Ptr, fd: *mut c_int) -> c_int;
    fn quorlock_sync_client_next_event(client: Ptr, event: *mut Event) -> c_int;
    fn quorlock_sync_client_close(client: Ptr) -> c_int;
    fn quorlock_sync_lock_new(lock: *mut Ptr, client: Ptr, keys: *const *const c_char, n: usize, options: *const c_void, failure: *mut Failure) -> c_int;
    fn quorlock_sync_lock_start_acquire(lock: Ptr, cb: *const c_void, arg: Ptr) -> c_int;
    fn quorlock_sync_lock_start_release(lock: Ptr, cb: *const c_void, arg: Ptr) -> c_int;
    fn quorlock_sync_lock_free(lock: Ptr);
    fn poll(fds: *mut Poll, n: u64, timeout_ms: c_int) -> c_int;
}

fn text(of: &[c_char]) -> String { unsafe { CStr::from_ptr(of.as_ptr()) }.to_string_lossy().into_owned() }

fn wait(client: Ptr, fd: c_int, event: &mut Event, kind: c_int) -> String {
    loop {
        if event.kind == NONE { unsafe { poll(&mut Poll { fd, events: 1, revents: 0 }, 1, -1) }; }
        assert_eq!(unsafe { quorlock_sync_client_next_event(client, event) }, 0);
        if event.kind == kind { return text(&event.text); }
    }
}

fn main() {
    let key = CString::new(std::env::args().nth(1).unwrap()).unwrap();
    let (mut settings, mut client, mut lock, mut fd) = (null_mut(), null_mut(), null_mut(), -1);
    let (mut failure, mut event): (Failure, Event) = unsafe { std::mem::zeroed() };
    let mut options = [0usize; 64]; // struct quorlock_client_options is smaller: zeros are the default
    options[0] = std::mem::size_of_val(&options);
    event.size = std::mem::size_of::<Event>();
    unsafe {
        assert_eq!(quorlock_settings_load(&mut settings, null(), null(), &mut failure), 0, "{}", text(&failure.text));
        assert_eq!(quorlock_settings_options(settings, options.as_mut_ptr(), &mut failure), 0, "{}", text(&failure.text));
        assert_eq!(quorlock_sync_client_new(&mut client, options.as_ptr(), &mut failure), 0, "{}", text(&failure.text));
        assert_eq!(quorlock_sync_client_events(client, &mut fd), 0);
        assert_eq!(quorlock_sync_lock_new(&mut lock, client, &key.as_ptr(), 1, null(), &mut failure), 0, "{}", text(&failure.text));
        for again in [true, false] {
            assert_eq!(quorlock_sync_lock_start_acquire(lock, null(), null_mut()), 0);
            println!("{}", wait(client, fd, &mut event, ACQUIRE_ENDED));
            assert_eq!(event.status, 0);
            if again { println!("{}", wait(client, fd, &mut event, LOST)); }
        }
        assert_eq!(quorlock_sync_lock_start_release(lock, null(), null_mut()), 0);
        println!("{}", wait(client, fd, &mut event, RELEASE_ENDED));
        quorlock_sync_lock_free(lock);
        assert_eq!(quorlock_sync_client_close(client), 0);
        wait(client, fd, &mut event, CLOSED);
    }
}
