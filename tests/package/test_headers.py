#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_headers.py SOURCE BUILD - tools read the public headers as they are: universal-ctags finds each function and
enumerator, and cffi, after the preprocessor, declares and calls them."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from test_manual import Headers

SKIPPED = 77
NAMES = ("quorlock.h", "election.h", "loop.h", "sync.h")


def fail(text):
    sys.exit(f"test_headers: FAILED: {text}")


def missing(wanted, found, by):
    if not wanted:
        fail(f"nothing to look for with {by}")
    if wanted - found:
        fail(f"{by} does not find {', '.join(sorted(wanted - found))}")


def check_ctags(paths, headers, enumerators):
    listed = subprocess.run(["ctags", "--options=NONE", "--kinds-C=+p", "--kinds-C++=+p", "-f", "-", *map(str, paths)], check=True,
                            capture_output=True, text=True).stdout
    tags = {(fields[0], fields[3]) for fields in (line.split("\t") for line in listed.splitlines()) if fields[0][0] != "!"}
    missing(set(headers.prototypes), {name for name, kind in tags if kind == "p"}, "ctags")
    missing(enumerators, {name for name, kind in tags if kind == "e"}, "ctags")


def preprocessed(include):
    """All headers as one text for cffi, which knows the types of stddef.h and stdint.h by itself."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("stddef.h", "stdint.h"):
            (Path(folder) / name).touch()
        return subprocess.run(["cc", "-E", "-P", "-nostdinc", f"-I{folder}", f"-I{include}", "-"], check=True, text=True,
                              input="".join(f"#include <quorlock/{name}>\n" for name in NAMES), capture_output=True).stdout


def check_cffi(cffi, include, build, headers, enumerators):
    ffi = cffi.FFI()
    ffi.cdef(preprocessed(include))
    library = ffi.dlopen(str(build / "lib/libquorlock.so"))
    missing(set(headers.prototypes) | enumerators, {name for name in dir(library) if getattr(library, name) is not None}, "cffi")
    for name in headers.structs:
        if ffi.sizeof(f"struct {name}") == 0:
            fail(f"struct {name} is empty for cffi")
    options, error, client = (ffi.new(f"{kind} *") for kind in
                              ("struct quorlock_client_options", "struct quorlock_error", "quorlock_sync_client *"))
    library.quorlock_client_options_init(options, ffi.sizeof("struct quorlock_client_options"))
    status = library.quorlock_sync_client_new(client, options, error)
    if (status, error.status) != (library.QUORLOCK_ERR_INVAL,) * 2 or b"0 node addresses" not in ffi.string(error.text):
        fail(f"a client without nodes ends with {status}, {error.status} and {ffi.string(error.text)} by cffi")


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} SOURCE BUILD")
    try:
        import cffi  # pylint: disable=import-outside-toplevel
    except ImportError:
        cffi = None
    for name, here in (("ctags", shutil.which("ctags")), ("cffi", cffi)):
        if not here:
            print(f"SKIPPED {name} is missing: scripts/setup --for more installs it")
            return SKIPPED
    include, build = Path(sys.argv[1]) / "include", Path(sys.argv[2])
    paths = [include / "quorlock" / name for name in NAMES]
    headers = Headers("\n".join(path.read_text(encoding="utf-8") for path in paths))
    enumerators = headers.enumerators
    check_ctags(paths, headers, enumerators)
    check_cffi(cffi, include, build, headers, enumerators)
    print(f"{len(headers.prototypes)} functions and {len(enumerators)} enumerators by ctags, and with {len(headers.structs)} "
          "structs by cffi")
    return 0


if __name__ == "__main__":
    sys.exit(main())
