# SPDX-License-Identifier: BSD-3-Clause
"""Put the library into the wheel, and keep files of the build out of the tree. pyproject.toml cannot do that.

The wheel contains libquorlock, linked here from the archive that CMake builds, and the libraries that libquorlock needs and
that not every system has. OpenSSL is the system's, with the system's updates and certificates. With QUORLOCK_BUNDLE=0 the
wheel contains no library, for systems where libquorlock is installed.
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
        bdist_wheel = None  # then only a source archive can be built

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "library"  # in a source archive: the library's sources
LAYERS = ("base", "core", "redis", "runtime", "lock", "admin", "election", "settings", "api", "packaging")
SETTINGS = ("COMMAND", "HARNESS", "TESTS", "INSTALL")
PACKAGES = ("libevent_core", "openssl")
# Libraries of the system: the C library and OpenSSL.
FOUND_THERE = re.compile(r"linux-(vdso|gate)|lib(c|m|dl|rt|pthread|gcc_s|ssl|crypto)\.(so|musl)|.*/ld")
BUNDLE = os.environ.get("QUORLOCK_BUNDLE") != "0"

# Before setuptools 77 project.license is a table, which later versions deprecate.
NEW = int(setuptools.__version__.split(".", maxsplit=1)[0]) >= 77
license_words = {"license_expression" if NEW else "license": "BSD-3-Clause"}
# Builds leave their files here, not in the tree.
folder = tempfile.mkdtemp(prefix="quorlock-build-")
atexit.register(shutil.rmtree, folder, ignore_errors=True)


def run(*words):
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"quorlock: {problem}. The build of libquorlock needs cmake, ninja or make, a C compiler, pkg-config, and "
                 "the headers of libevent and OpenSSL. With QUORLOCK_BUNDLE=0 the package uses the "
                 "libquorlock that is installed.")


def sources():
    for place in (os.path.join(HERE, LIBRARY), os.path.dirname(os.path.dirname(HERE))):
        if os.path.isfile(os.path.join(place, "include", "quorlock", "quorlock.h")):
            return place
    sys.exit(f"quorlock: {HERE} has no sources of libquorlock: build in their tree or from the source archive, or "
             "set QUORLOCK_BUNDLE=0 to use the installed libquorlock")


def build_archive():
    place = os.path.join(folder, "cmake")
    run("cmake", "-S", sources(), "-B", place, *(f"-DQUORLOCK_{name}=OFF" for name in SETTINGS))
    run("cmake", "--build", place, "--target", "quorlock_static", "--parallel", str(os.cpu_count() or 1))
    return os.path.join(place, "lib", "libquorlock.a")


def put_library(where):
    """Put the library there, and beside it the libraries that it needs; it looks for them in its own folder first."""
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
        """A wheel for one kind of machine, and for every version of Python."""

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
