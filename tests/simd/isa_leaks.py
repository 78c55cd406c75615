#!/usr/bin/env python3
"""Checks that code for one instruction set stays in its own functions.

    isa_leaks.py PORTABLE_ARCHIVE... -- AVX2_ARCHIVE AVX512_ARCHIVE

A function that two files define (an inline one of a header) is kept once by the linker, perhaps in its AVX-512 form: so
what an ISA's archive exports must carry the ISA in its name. Nor may it have initialisers, which run on every CPU.
And the portable archives must not touch ymm or zmm registers.
"""
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(archive):
    """Global and weak symbols that the archive defines."""
    names = []
    for line in output("nm", "-C", "--defined-only", archive).splitlines():
        match = re.match(r"[0-9a-f]+ ([A-Za-z]) (.+)$", line)
        if match and (match[1].isupper() or match[1] in "uvw"):
            names.append(match[2])
    return names


def main():
    split = sys.argv.index("--")
    portable, (avx2, avx512) = sys.argv[1:split], sys.argv[split + 1:]
    faults = []

    for archive, mark in ((avx2, re.compile(r"(Kernels|Update)For<xsimd::fma3<xsimd::avx2> >|^ferry::simd::kAvx2Kernels$")),
                          (avx512, re.compile(r"(Kernels|Update)For<xsimd::avx512bw>|^ferry::simd::kAvx512Kernels$"))):
        names = exported(archive)
        if len(names) < 10:
            faults.append(f"{archive}: {len(names)} symbols, expected the kernels")
        for name in names:
            if not mark.search(name) and not name.startswith("DW.ref.__gxx_personality"):
                faults.append(f"{archive} exports {name}")
        if ".init_array" in output("objdump", "-h", archive):
            faults.append(f"{archive} has static initialisers")

    for archive in portable:
        for line in output("objdump", "-d", "--no-show-raw-insn", archive).splitlines():
            if re.search(r"%[yz]mm", line):
                faults.append(f"{archive}: {line.strip()}")
                break

    if "%zmm" not in output("objdump", "-d", "--no-show-raw-insn", avx512):
        faults.append(f"{avx512} uses no zmm register")
    if "%zmm" in output("objdump", "-d", "--no-show-raw-insn", avx2):
        faults.append(f"{avx2} uses zmm registers")

    print("\n".join(faults) or "each instruction set in its own functions")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
