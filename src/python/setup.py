# SPDX-License-Identifier: BSD-3-Clause
"""What pyproject.toml cannot say: the library inside the wheel, and where builds leave their files.

The wheel holds libquorlock, linked here from the archive that CMake builds, and beside it what it needs and not every
system has. OpenSSL stays the system's, which mends it and knows its certificates. QUORLOCK_BUNDLE=0: no library in it,
for systems where libquorlock is installed.
"""
import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import setuptools
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    try:
        from wheel.bdist_wheel import bdist_wheel
    except ImportError:
        bdist_wheel = None  # then no wheel is built, but a source archive may be

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "library"  # in a source archive: the library's sources
LAYERS = ("base", "core", "redis", "runtime", "lock", "admin", "election", "api", "packaging")
SETTINGS = ("COMMAND", "HARNESS", "TESTS", "INSTALL")
PACKAGES = ("hiredis", "libevent_core", "openssl")
# The C library, and OpenSSL.
FOUND_THERE = re.compile(r"linux-(vdso|gate)|lib(c|m|dl|rt|pthread|gcc_s|ssl|crypto)\.(so|musl)|.*/ld")
BUNDLE = os.environ.get("QUORLOCK_BUNDLE") != "0"

# project.license is a table before setuptools 77, and from then on that is deprecated.
NEW = int(setuptools.__version__.split(".", maxsplit=1)[0]) >= 77
license_words = {"license_expression" if NEW else "license": "BSD-3-Clause"}
# The tree stays as it is.
folder = tempfile.mkdtemp(prefix="quorlock-build-")
atexit.register(shutil.rmtree, folder, ignore_errors=True)


def run(*words):
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"quorlock: {problem}. To build libquorlock takes cmake, ninja or make, a C compiler, pkg-config, and "
                 "the headers of hiredis, libevent and OpenSSL. With QUORLOCK_BUNDLE=0 the package uses the "
                 "libquorlock that is installed.")


def sources():
    for place in (os.path.join(HERE, LIBRARY), os.path.dirname(os.path.dirname(HERE))):
        if os.path.isfile(os.path.join(place, "include", "quorlock", "quorlock.h")):
            return place
    sys.exit(f"quorlock: {HERE} is without libquorlock's sources: build in their tree or from the source archive, or "
             "set QUORLOCK_BUNDLE=0 to use the libquorlock that is installed")


def build_archive():
    place = os.path.join(folder, "cmake")
    run("cmake", "-S", sources(), "-B", place, *(f"-DQUORLOCK_{name}=OFF" for name in SETTINGS))
    run("cmake", "--build", place, "--target", "quorlock_static", "--parallel", str(os.cpu_count() or 1))
    return os.path.join(place, "lib", "libquorlock.a")


def put_library(where):
    """The library, and what it needs: where it stands, that is found first."""
    with open(os.path.join(HERE, "quorlock", "_version.py"), encoding="utf-8") as file:
        version = re.search(r'"(\d+\.\d+)\.', file.read())[1]
    name = f"libquorlock.so.{version}"
    archive = build_archive()
    os.makedirs(where, exist_ok=True)
    made = os.path.join(where, name)
    run(*shlex.split(os.environ.get("CC") or "cc"), "-shared", "-s", "-pthread", "-o", made, f"-Wl,-soname,{name}",
        "-Wl,--as-needed,-z,relro,-z,now,-z,nodelete,-z,defs", "-Wl,--disable-new-dtags,-rpath,$ORIGIN",
        "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
        *run("pkg-config", "--libs", *PACKAGES).split(), *shlex.split(os.environ.get("LDFLAGS") or ""))
    for needed, path in re.findall(r"^\s*(\S+)(?: => (\S+))?", run("ldd", made), re.MULTILINE):
        if not FOUND_THERE.match(needed):
            if not os.path.isabs(path):
                sys.exit(f"quorlock: {name} needs {needed}, which is not found here")
            shutil.copyfile(path, os.path.join(where, needed))


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if BUNDLE and not getattr(self, "editable_mode", False):
            put_library(os.path.join(self.build_lib, "quorlock", "lib"))


class SourcesOfLibrary(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        place, to = sources(), os.path.join(base_dir, LIBRARY)
        shutil.copytree(os.path.join(place, "include"), os.path.join(to, "include"))
        for layer in LAYERS:
            shutil.copytree(os.path.join(place, "src", layer), os.path.join(to, "src", layer))
        for name in ("CMakeLists.txt", os.path.join("src", "CMakeLists.txt")):
            shutil.copyfile(os.path.join(place, name), os.path.join(to, name))


commands = {"build_py": BuildWithLibrary, "sdist": SourcesOfLibrary}
if bdist_wheel is not None and BUNDLE:
    class PlatformWheel(bdist_wheel):
        """Of one kind of machine, and for every Python."""

        def finalize_options(self):
            super().finalize_options()
            self.root_is_pure = False

        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    commands["bdist_wheel"] = PlatformWheel


class Distribution(setuptools.Distribution):
    def has_ext_modules(self):
        return BUNDLE


setuptools.setup(options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}}, cmdclass=commands,
                 distclass=Distribution, **license_words)
