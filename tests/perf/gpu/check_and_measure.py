#!/usr/bin/env python3
"""Checks Ferry on the GPU that is here, then measures it beside formulas and peers, in one go; builds nothing.

    check_and_measure.py BUILD_DIR [--logs DIR] [--part NAME]... [--seed N] [--absolute]

BUILD_DIR is a build with CUDA and tests. Parts, in this order, all by themselves: checks (every test on the GPU, several at a
time; those alone that others would disturb), profile (what the machine can do, which later parts use), steps, formula, grid
(whose drawn half --seed picks), ops, adamw, states (a fine-tuning with each kind), peers; and, only where asked for,
large: what has no peers and takes up to 118 GiB of host memory (--absolute holds bars of one machine too). Programs that are
not there are said to be missing, and count as failed. Logs of everything go to DIR (default BUILD_DIR/gpu-logs); what is
printed is a short table. Exits 1 if a check failed, or a program that measures: most of them fail where a bar is missed.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIMD = HERE.parents[1] / 'simd'
sys.path.insert(0, str(HERE.parent))
import compare

CHECKS = [  # program, GoogleTest filter, seconds, into how many processes its tests are dealt
    ('tests/simd/simd_test', '*', 120, 1),
    ('tests/models/cuda/cuda_kernels_test', '*', 180, 1),
    ('tests/models/models_test', '*OpsOnDevice*', 120, 1),
    ('tests/offload/offload_test', '*Cuda*:*cuda*-*TheDriverCounts*', 300, 3),
    ('tests/engine/gpu_calls_test', '*', 120, 1),
    ('tests/engine/same_bits_test', '*Gpu*', 400, 8),
    ('tests/train/live_run_test', '*Paused*', 400, 1),
    ('tests/train/best_kept_test', '*', 300, 1),
    ('tests/train/kill_loop_test', '*', 400, 1),
]
ALONE = [
    # thousands of small kernels, each waited for: beside programs that share the GPU's time that takes ten times as long
    ('tests/simd/simd_cuda_test', '*', 120, 1),
    # the driver counts the memory of all programs
    ('tests/offload/offload_test', '*TheDriverCounts*', 60, 1), ('tests/engine/allocation_test', '*', 120, 1),
    ('tests/train/resume_test', '*Ten*:*Killed*', 400, 1), ('tests/train/live_run_test', '*AnotherProgram*', 120, 1)]
GRACE_S = 10
PEER_S = 240  # of one peer at one work, at most; some are a minute in setting themselves up
PARALLEL = max(1, min(10, (os.cpu_count() or 1) * 5 // 8))
STEPS = [  # name, arguments of step_bench: BERT-Large, 512 tokens, 32 a step, clip 1.0
    ('resident, bf16', ['--placement', 'gpu', '--activations', 'keep']),
    ('all on host, bf16', ['--placement', 'host', '--activations', 'keep']),
    ('all on host, bf16, no clip', ['--placement', 'host', '--activations', 'keep', '--clip', '0']),
    ('11 GiB, all on host, bf16', ['--gpu-memory', '11GiB', '--placement', 'host']),
    ('11 GiB, all on host, fp16', ['--gpu-memory', '11GiB', '--placement', 'host', '--dtype', 'fp16']),
    ('11 GiB, planned, bf16', ['--gpu-memory', '11GiB']),
    ('11 GiB, planned, fp32', ['--gpu-memory', '11GiB', '--dtype', 'fp32']),
]


def run(command, log, seconds, env=None):
    """(exit code, output); 124 where it took longer."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=dict(os.environ, **(env or {})))
    try:
        text, code = process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        process.terminate()  # so that it ends what it started itself
        try:
            text = process.communicate(timeout=GRACE_S)[0]
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.wait()
            text = (late.stdout or b'').decode(errors='replace')
        code = 124
    log.write_text(text)
    return code, text


def check_one(build, logs, name, which, seconds, shard, n_shards):
    """Whether it passed."""
    program, start = build / name, time.monotonic()
    title = f'{name} {which}' + (f' ({shard + 1} of {n_shards})' if n_shards > 1 else '')
    if not program.exists():
        print(f'MISSING  {name}', flush=True)
        return False
    log = logs / f"{program.name}{which.replace('*', '').replace(':', ' ')}{shard or ''}.log"
    # OpenMP's threads spin before they sleep: beside other programs on the same cores that takes longer than the tests.
    code, text = run([program, f'--gtest_filter={which}'], log, seconds,
                     {'FERRY_TEST_DEVICE': 'cuda', 'GOMP_SPINCOUNT': '10000', 'GTEST_TOTAL_SHARDS': str(n_shards),
                      'GTEST_SHARD_INDEX': str(shard)})
    n_passed = text.count('[       OK ] ')
    failed = [line.split()[3] for line in text.splitlines() if line.startswith('[  FAILED  ] ') and line.endswith('ms)')]
    # A check of which everything was skipped has checked nothing.
    state = f'FAILED {code}' if code != 0 else 'ok' if n_passed > 0 else 'SKIPPED'
    print(f"{state:10} {title}: {n_passed} passed, {time.monotonic() - start:.0f} s  {' '.join(failed[:6])}", flush=True)
    return state == 'ok'


def check(build, logs):
    """How many failed."""
    def dealt(checks):
        return [(*check[:3], shard, check[3]) for check in checks for shard in range(check[3])]

    with ThreadPoolExecutor(PARALLEL) as pool:
        passed = list(pool.map(lambda one: check_one(build, logs, *one), dealt(CHECKS)))
    passed += [check_one(build, logs, *one) for one in dealt(ALONE)]
    return passed.count(False)


not_well = []  # programs that failed, bars that were missed


def show(title, command, log, seconds, last=30):
    """Runs a program that prints a table of its own."""
    print(f'\n{title}', flush=True)
    code, text = run(command, log, seconds)
    print('\n'.join('  ' + line for line in text.splitlines()[-last:]), flush=True)
    if code not in (0, compare.SKIPPED):
        print(f'  exit {code}', flush=True)
        not_well.append(title)


def measure_steps(build, logs, _):
    bench = build / 'tests/perf/step_bench'
    print(f"\n{'BERT-Large, 512 tokens, 32 a step':36} samples/s   ms a step   GPU GiB (driver)")
    for name, arguments in STEPS:
        code, text = run([bench] + arguments, logs / f"step {name.replace('/', '-')}.log", 150)
        found = compare.objects(text)
        if code != 0 or not found:
            print(f'{name:36} failed, exit {code}: {text.strip()[-160:]}', flush=True)
            not_well.append(name)
            continue
        result = found[-1]
        print(f"{name:36} {result['samples_per_s']:9.1f} {result['step_ms']:11.1f} {result['driver_bytes_max'] / 2**30:12.2f}   "
              f"{result['why']}", flush=True)


def profile_of(logs):
    return logs / 'machine.json'


def measure_profile(build, logs, _):
    os.environ['FERRY_TRAINER'] = str(build / 'src/train/ferry-trainer')
    profile_of(logs).unlink(missing_ok=True)  # ferry overwrites nothing
    show('The machine', [build / 'src/cli/ferry', 'bench', 'all', '--output', profile_of(logs)], logs / 'profile.log',
         compare.PROFILE_S, last=3)


def measure_formula(build, logs, _):
    show('Steps against the formula', [sys.executable, HERE / 'against_formula.py', build, 'host-clip', 'host-no-clip',
                                       'stack-host', 'stack-filled', 'frozen-host', 'frozen-filled', 'bert-4gib',
                                       'consumer-host', '--logs', logs], logs / 'formula.log', 500)


def measure_grid(build, logs, arguments):
    show('The planner against reality', [sys.executable, HERE / 'plan_grid.py', build / 'tests/perf/step_bench', profile_of(logs),
                                         '--seed', arguments.seed, '--out', logs], logs / 'grid.log', 500)


def measure_sweep(build, logs, _):
    show('The chosen plan beside forced ones', [sys.executable, HERE / 'plan_sweep.py', build / 'tests/perf/step_bench',
                                                profile_of(logs), '--out', logs], logs / 'sweep.log', 500)


def measure_ops(build, logs, _):
    for shape in ('bert-large', 'llama-3g', 'gpt2-13g'):
        show(f'Each operation alone, {shape}, bf16', [build / 'tests/perf/ops/ops_bench', '--shape', shape],
             logs / f'ops {shape}.log', 180, last=40)


def measure_adamw(build, logs, _):
    show('AdamW on the CPU', [sys.executable, SIMD / 'bench_adamw', build / 'tests/simd/simd_bench', '--ferry',
                              build / 'src/cli/ferry'], logs / 'adamw.log', 300, last=12)


def measure_states(build, logs, _):
    show('Accuracy by kind of optimizer states',
         [sys.executable, HERE.parents[1] / 'parity/optim_states.py', build / 'src/cli/ferry', '--device', 'cuda',
          '--seeds', '42,43,44', '--jobs', 3], logs / 'states.log', 600)


def compare_works(build, logs, names, arguments):
    """A work at a time: one that is not done loses no other."""
    profile = [profile_of(logs)] if profile_of(logs).exists() else []  # else compare.py measures one
    for name in names:
        command = [sys.executable, HERE.parent / 'compare.py', build / 'tests/perf/step_bench', *profile, '--work', name,
                   '--limit', PEER_S, '--out', logs / f'peers-{name}'] + ['--absolute'] * arguments.absolute
        seconds = compare.seconds_of(compare.WORKS[name], PEER_S) + (0 if profile else compare.PROFILE_S) + GRACE_S
        show(f'Beside peers, {name}', command, logs / f'peers-{name}.log', seconds)


def measure_peers(build, logs, arguments):
    compare_works(build, logs, compare.DEFAULT, arguments)


def measure_large(build, logs, arguments):
    compare_works(build, logs, [name for name in compare.WORKS if name not in compare.DEFAULT], arguments)


MEASURES = {'profile': measure_profile, 'steps': measure_steps, 'formula': measure_formula, 'grid': measure_grid,
            'sweep': measure_sweep, 'ops': measure_ops, 'adamw': measure_adamw, 'states': measure_states,
            'peers': measure_peers, 'large': measure_large}
UNASKED = ['checks', *(name for name in MEASURES if name != 'large')]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', type=Path)
    parser.add_argument('--logs', type=Path)
    parser.add_argument('--part', action='append', choices=['checks', *MEASURES])
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--absolute', action='store_true')
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    logs = (arguments.logs or build / 'gpu-logs').resolve()
    logs.mkdir(parents=True, exist_ok=True)
    parts = arguments.part or UNASKED
    failed = check(build, logs) if 'checks' in parts else 0
    for name, measure in MEASURES.items():
        if name in parts:
            measure(build, logs, arguments)
    for title in not_well:
        print(f'failed, or missed a bar: {title}', flush=True)
    sys.exit(1 if failed or not_well else 0)


if __name__ == '__main__':
    main()
