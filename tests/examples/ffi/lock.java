// SPDX-License-Identifier: BSD-3-Clause
// java -cp jna.jar lock.java KEY: holds a lock until it is lost, takes it again, and releases it. Needs JNA.
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.PointerByReference;

public class lock {
    public interface Quorlock extends Library { // size_t is long on 64 bits
        int quorlock_settings_load(PointerByReference settings, String file, String set, byte[] failure);
        int quorlock_settings_options(Pointer settings, byte[] options, byte[] failure);
        int quorlock_sync_client_new(PointerByReference client, byte[] options, byte[] failure);
        int quorlock_sync_client_events(Pointer client, IntByReference fd);
        int quorlock_sync_client_next_event(Pointer client, Event event);
        int quorlock_sync_client_close(Pointer client);
        int quorlock_sync_lock_new(PointerByReference lock, Pointer client, String[] keys, long n, Pointer options, byte[] failure);
        int quorlock_sync_lock_start_acquire(Pointer lock, Pointer cb, Pointer arg);
        int quorlock_sync_lock_start_release(Pointer lock, Pointer cb, Pointer arg);
        void quorlock_sync_lock_free(Pointer lock);
    }

    public interface Libc extends Library {
        int poll(PollFd fds, long n, int timeout);
    }

    @Structure.FieldOrder({"fd", "events", "revents"})
    public static class PollFd extends Structure {
        public int fd;
        public short events = 1, revents; // POLLIN
    }

    @Structure.FieldOrder({"size", "type", "status", "handle", "arg", "fence", "term", "numbers", "reason", "level", "state", "n_dropped",
        "text", "token"})
    public static class Event extends Structure {
        public long size;
        public int type, status;
        public Pointer handle, arg;
        public long fence, term;
        public int[] numbers = new int[8];
        public int reason, level, state;
        public long n_dropped;
        public byte[] text = new byte[1400], token = new byte[128];
    }

    static final int NONE = 0, CLOSED = 1, LOST = 3, ACQUIRE_ENDED = 4, RELEASE_ENDED = 5; // enum quorlock_event_type
    static final Quorlock Q = Native.load("quorlock", Quorlock.class);
    static final Libc C = Native.load("c", Libc.class);
    static final byte[] failure = new byte[516]; // struct quorlock_error
    static final PointerByReference settings = new PointerByReference(), client = new PointerByReference(), lock = new PointerByReference();
    static final PollFd poll = new PollFd();
    static final Event event = new Event();

    static void check(int status) {
        if (status != 0) throw new RuntimeException("status " + status + " " + new String(failure, 4, 512).trim());
    }

    static String await(int kind) {
        while (true) {
            if (event.type == NONE) C.poll(poll, 1, -1);
            check(Q.quorlock_sync_client_next_event(client.getValue(), event));
            if (event.type == kind) return Native.toString(event.text, "UTF-8");
        }
    }

    static void acquire() {
        check(Q.quorlock_sync_lock_start_acquire(lock.getValue(), null, null));
        System.out.println(await(ACQUIRE_ENDED));
        check(event.status);
    }

    public static void main(String[] keys) {
        byte[] options = new byte[512]; // struct quorlock_client_options is smaller: zeros are the default
        IntByReference fd = new IntByReference();

        java.nio.ByteBuffer.wrap(options).order(java.nio.ByteOrder.nativeOrder()).putLong(options.length);
        check(Q.quorlock_settings_load(settings, null, null, failure));
        check(Q.quorlock_settings_options(settings.getValue(), options, failure));
        check(Q.quorlock_sync_client_new(client, options, failure));
        check(Q.quorlock_sync_client_events(client.getValue(), fd));
        check(Q.quorlock_sync_lock_new(lock, client.getValue(), keys, 1, null, failure));
        poll.fd = fd.getValue();
        event.size = event.size();
        acquire();
        System.out.println(await(LOST));
        acquire();
        check(Q.quorlock_sync_lock_start_release(lock.getValue(), null, null));
        System.out.println(await(RELEASE_ENDED));
        Q.quorlock_sync_lock_free(lock.getValue());
        check(Q.quorlock_sync_client_close(client.getValue()));
        await(CLOSED);
    }
}
