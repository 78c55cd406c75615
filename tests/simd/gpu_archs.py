#!/usr/bin/env python3
"""The GPU code in what nvcc made: machine code of each architecture that is promised, and PTX of the newest, all of it optimised.

    gpu_archs.py all NVCC SOURCE NVCC_ARGUMENT...   compiles the source with these arguments, those of -Dgpu_archs=all
    gpu_archs.py build PROGRAM ARCHS PTX            looks into a program of the build for a list such as 75,86 and PTX of one

Reads the fat binaries themselves: cuobjdump is no part of the nvcc that PyPI has. Exits 77 where there is no nvcc.
"""

import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

# README and LibTorch 2.11's own code: from Turing to Blackwell.
PROMISED = [75, 80, 86, 89, 90, 100, 120]
# fatbinary_section.h of the CUDA toolkit has the container; each entry in it starts with its kind and its sizes.
CONTAINER = struct.Struct('<IHHQ')  # magic, version, bytes of the header, bytes of all entries
MAGIC = 0xBA55ED50
ENTRY = struct.Struct('<HHIQ12xI8xQ')  # kind, -, bytes of the header, bytes of the code, architecture, flags
DEBUG = 1 << 1  # a flag: made with -G, which optimises nothing
KINDS = {1: 'ptx', 2: 'code'}


def fat_binaries(path):
    """One list of (kind, architecture) for each source file's kernels in an object or program."""
    with tempfile.TemporaryDirectory() as folder:
        section = Path(folder) / 'section'
        subprocess.run(['objcopy', '-O', 'binary', '--only-section=.nv_fatbin', path, section], check=True)
        data = section.read_bytes()
    found, at = [], 0
    while at < len(data):
        if data[at] == 0:  # between two files' kernels
            at += 1
            continue
        magic, _, n_header, n_entries = CONTAINER.unpack_from(data, at)
        assert magic == MAGIC, f'no fat binary at {at} of {path}'
        at += n_header
        end, entries = at + n_entries, []
        while at < end:
            kind, _, n_header, n_code, arch, flags = ENTRY.unpack_from(data, at)
            assert not flags & DEBUG, f'{KINDS[kind]} {arch} in {path} is not optimised: it was compiled with -G'
            entries.append((KINDS[kind], arch))
            at += n_header + n_code
        assert at == end, f'entries of {path} end at {at}, not at {end}'
        found.append(sorted(entries))
    return found


def compile_source(nvcc, source, arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / 'kernels.o'
        subprocess.run([nvcc, '-std=c++20', '--threads', '2', '-c', source, '-o', out] + arguments, check=True)
        return fat_binaries(out)


def check(found, archs, ptx):
    """What is wrong, '' if nothing."""
    wanted = sorted([('code', arch) for arch in archs] + [('ptx', ptx)])
    if not found:
        return 'there is no GPU code'
    for entries in found:
        print(', '.join(f'{kind} {arch}' for kind, arch in entries))
        if entries != wanted:
            return f'this is not {wanted}'
    return ''


def main():
    mode, program = sys.argv[1:3]
    if not shutil.which(program):
        print(f'skipped: there is no {Path(program).name}')
        sys.exit(77)
    if mode == 'all':
        trouble = check(compile_source(program, sys.argv[3], sys.argv[4:]), PROMISED, PROMISED[-1])
    else:
        archs = [int(arch) for arch in sys.argv[3].split(',')]
        trouble = check(fat_binaries(program), archs, int(sys.argv[4]))
    if trouble:
        sys.exit(trouble)


if __name__ == '__main__':
    main()
