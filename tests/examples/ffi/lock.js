// SPDX-License-Identifier: BSD-3-Clause
// node lock.js KEY: holds a lock until it is lost, takes it again, and releases it. Needs koffi, of npm.
const koffi = require("koffi");
const lib = koffi.load("libquorlock.so");
const Event = koffi.struct({ size: "size_t", type: "int", status: "int", handle: "void *", arg: "void *", fence: "uint64_t", term: "uint64_t",
    numbers: koffi.array("uint32_t", 8), reason: "int", level: "int", state: "int", n_dropped: "uint64_t",
    text: koffi.array("char", 1400), token: koffi.array("char", 128) });
const [NONE, CLOSED, LOG, LOST, ACQUIRE_ENDED, RELEASE_ENDED] = [0, 1, 2, 3, 4, 5]; // enum quorlock_event_type
const settingsLoad = lib.func("int quorlock_settings_load(_Out_ void **settings, str file, str set, void *failure)");
const settingsOptions = lib.func("int quorlock_settings_options(void *settings, void *options, void *failure)");
const clientNew = lib.func("int quorlock_sync_client_new(_Out_ void **client, void *options, void *failure)");
const clientEvents = lib.func("int quorlock_sync_client_events(void *client, _Out_ int *fd)");
const nextEvent = lib.func("quorlock_sync_client_next_event", "int", ["void *", koffi.inout(koffi.pointer(Event))]);
const clientClose = lib.func("int quorlock_sync_client_close(void *client)");
const lockNew = lib.func("int quorlock_sync_lock_new(_Out_ void **lock, void *client, str *keys, size_t n, void *options, void *failure)");
const startAcquire = lib.func("int quorlock_sync_lock_start_acquire(void *lock, void *cb, void *arg)");
const startRelease = lib.func("int quorlock_sync_lock_start_release(void *lock, void *cb, void *arg)");
const lockFree = lib.func("void quorlock_sync_lock_free(void *lock)");

const failure = Buffer.alloc(516); // struct quorlock_error
const check = (status) => { if (status !== 0) throw new Error(`status ${status} ${failure.toString("utf8", 4)}`); };
const [settings, client, lock, fd] = [[null], [null], [null], [0]];
const options = Buffer.alloc(512); // struct quorlock_client_options is smaller: zeros are the default
options.writeBigUInt64LE(512n);
check(settingsLoad(settings, null, null, failure));
check(settingsOptions(settings[0], options, failure));
check(clientNew(client, options, failure));
check(clientEvents(client[0], fd));
check(lockNew(lock, client[0], [process.argv[2]], 1, null, failure));
const event = koffi.decode(Buffer.alloc(koffi.sizeof(Event)), Event);
event.size = koffi.sizeof(Event);

async function wait(kind) { // for an event of this kind: Node.js cannot wait for a descriptor, so this looks from time to time
    for (;;) {
        check(nextEvent(client[0], event));
        if (event.type === kind) return event.text;
        if (event.type === NONE) await new Promise((done) => setTimeout(done, 20));
    }
}

async function acquire() {
    check(startAcquire(lock[0], null, null));
    console.log(await wait(ACQUIRE_ENDED));
    check(event.status);
}

(async () => {
    await acquire();
    console.log(await wait(LOST));
    await acquire();
    check(startRelease(lock[0], null, null));
    console.log(await wait(RELEASE_ENDED));
    lockFree(lock[0]);
    check(clientClose(client[0]));
    await wait(CLOSED);
})();
