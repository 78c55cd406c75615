#!/usr/bin/env python3
"""Checks Ferry on the GPU that is here, then measures it beside its peers, in one go; builds nothing.

    check_and_measure.py BUILD_DIR [--logs DIR] [--skip-checks] [--skip-measures]

BUILD_DIR is a build with CUDA and tests. Programs that are not there are said to be missing, and count as failed. Logs of
everything go to DIR (default BUILD_DIR/gpu-logs); what is printed is a short table. Exits 1 if a check failed.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIMD = HERE.parents[1] / 'simd'

CHECKS = [  # program, GoogleTest filter, seconds
    ('tests/simd/simd_test', '*', 120),
    ('tests/simd/simd_cuda_test', '*', 120),
    ('tests/models/cuda/cuda_kernels_test', '*', 180),
    ('tests/offload/offload_test', '*Cuda*:*cuda*', 300),
    ('tests/engine/allocation_test', '*', 120),
    ('tests/engine/same_bits_test', '*Gpu*', 400),
]
STEPS = [  # name, arguments of step_bench: BERT-Large, 512 tokens, 32 a step, clip 1.0
    ('resident, bf16', ['--placement', 'gpu', '--activations', 'keep']),
    ('all on host, bf16', ['--placement', 'host', '--activations', 'keep']),
    ('all on host, bf16, no clip', ['--placement', 'host', '--activations', 'keep', '--clip', '0']),
    ('11 GiB, all on host, bf16', ['--gpu-memory', '11GiB', '--placement', 'host']),
    ('11 GiB, all on host, fp16', ['--gpu-memory', '11GiB', '--placement', 'host', '--dtype', 'fp16']),
    ('11 GiB, planned, bf16', ['--gpu-memory', '11GiB']),
    ('11 GiB, planned, fp32', ['--gpu-memory', '11GiB', '--dtype', 'fp32']),
]


def run(command, log, seconds):
    """(exit code, output); 124 where it took longer."""
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=seconds)
        code, text = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, text = 124, (late.stdout or b'').decode(errors='replace')
    log.write_text(text)
    return code, text


def check(build, logs):
    failed = 0
    for name, which, seconds in CHECKS:
        program, start = build / name, time.monotonic()
        if not program.exists():
            print(f'MISSING  {name}')
            failed += 1
            continue
        code, text = run([program, f'--gtest_filter={which}'], logs / f'{program.name}.log', seconds)
        counts = [line for line in text.splitlines() if line.startswith(('[  PASSED  ]', '[  SKIPPED ]', '[  FAILED  ]'))]
        failed += code != 0
        print(f"{'ok' if code == 0 else f'FAILED {code}':8} {name}  {time.monotonic() - start:.0f} s  {'; '.join(counts[:6])}",
              flush=True)
    return failed


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{')]


def measure(build, logs):
    bench = build / 'tests/perf/step_bench'
    print(f"\n{'BERT-Large, 512 tokens, 32 a step':36} samples/s   ms a step   GPU GiB (driver)")
    for name, arguments in STEPS:
        code, text = run([bench] + arguments, logs / f"step {name.replace('/', '-')}.log", 150)
        found = objects(text)
        if code != 0 or not found:
            print(f'{name:36} failed, exit {code}: {text.strip()[-160:]}', flush=True)
            continue
        result = found[-1]
        print(f"{name:36} {result['samples_per_s']:9.1f} {result['step_ms']:11.1f} {result['driver_bytes_max'] / 2**30:12.2f}   "
              f"{result['why']}", flush=True)

    print('\n24 layers of BERT-Large, 16 x 512, bf16, forward and backward')
    for name, command in [('Ferry', [build / 'tests/perf/gpu/layer_spike']),
                          ('transformers', [sys.executable, HERE / 'layer_peer.py'])]:
        code, text = run(command, logs / f'layers {name}.log', 240)
        print('\n'.join(f'  {name}: {line}' for line in text.splitlines() if 'samples' in line or 'bits' in line)
              or f'  {name}: failed, exit {code}: {text.strip()[-160:]}', flush=True)

    print('\nAdamW on the CPU')
    code, text = run([sys.executable, SIMD / 'bench_adamw', build / 'tests/simd/simd_bench'], logs / 'adamw.log', 240)
    print('\n'.join('  ' + line for line in text.splitlines()[-4:]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', type=Path)
    parser.add_argument('--logs', type=Path)
    parser.add_argument('--skip-checks', action='store_true')
    parser.add_argument('--skip-measures', action='store_true')
    arguments = parser.parse_args()
    logs = arguments.logs or arguments.build / 'gpu-logs'
    logs.mkdir(parents=True, exist_ok=True)
    failed = 0 if arguments.skip_checks else check(arguments.build, logs)
    if not arguments.skip_measures:
        measure(arguments.build, logs)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
