#!/usr/bin/env python3
"""Compiles each header of the product alone: a file that includes it first must need nothing before it.

    tests/scripts/headers.py BUILD_DIR [NAME]...

Units of many files hide what a header forgets, a build file by file stops at it. BUILD_DIR is configured, with every room of
this machine; it gives the include directories. Names choose headers that begin so. Without names those that the last commits
touched are compiled, and with FERRY_LONG all: that takes six minutes of a core. Headers of GPU code are left to nvcc, which compiles
file by file.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECENT_COMMITS = 8


def include_flags(build):
    """The include directories of all commands of the build, each once, in their order."""
    flags = []
    for command in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(command["command"])
        for i, word in enumerate(words):
            if word == "-isystem":
                found = ["-isystem", os.path.normpath(build / words[i + 1])]
            elif word.startswith("-isystem"):
                found = [word]
            elif word.startswith("-I") and not word.endswith(".p"):
                found = ["-I" + os.path.normpath(build / word[2:])]
            else:
                continue
            if found not in flags:
                flags.append(found)
    return [word for found in flags for word in found]


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def main():
    build, names = Path(sys.argv[1]).resolve(), tuple(sys.argv[2:])
    listed = git("ls-files", "*.h")
    if not names and "FERRY_LONG" not in os.environ:
        recent = set(git("log", "-n", str(RECENT_COMMITS), "--name-only", "--format=", "--", "*.h"))
        listed = [name for name in listed if name in recent]
    has_qt = any("/qt6" in flag for flag in include_flags(build))
    has_torch = any(flag.endswith("torch/include") for flag in include_flags(build))
    headers = [name for name in listed if not name.startswith("tests/") and "/cuda/" not in name and name.startswith(names or "")
               and (has_qt or not name.startswith("gui/"))]
    if not has_torch:
        print("skipped: LibTorch is not in this build")
        sys.exit(77)
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    flags = ["-std=c++20", "-fPIC", "-fsyntax-only", "-w", "-fmax-errors=1", "-DFMT_HEADER_ONLY=1",
             "-mavx512f", "-mavx512bw", "-mavx512dq", "-mfma", *include_flags(build)]

    def compiled(name):
        done = subprocess.run([*compiler, *flags, "-x", "c++", name], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        return name, done.returncode, done.stderr

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [(name, said) for name, code, said in pool.map(compiled, headers) if code != 0]
    for name, said in failed:
        print(f"{name} does not compile alone:\n{said}")
    print(f"{len(headers)} headers, {len(failed)} do not compile alone")
    sys.exit(1 if failed or names and not headers else 0)


if __name__ == "__main__":
    main()
