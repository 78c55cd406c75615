"""The parts of the test suite, in order: format, main, isa, asan, tsan; with the full counts also fuzz and plain.

Called by scripts/test. Once the arguments are read scripts/setup installs what is missing. Each part builds in its own
directory through scripts/build and adds to one tally, which is read from what Meson and GoogleTest wrote, case by case.
Exits 1 if anything failed or nothing ran.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / os.environ.get('FERRY_VENV', '.venv')
CASES_OF_PROGRAM = ROOT / 'scripts/run_cases'
# Sanitizers find as much without inlining, and compile in half the time; line numbers stay.
QUICK_TO_COMPILE = ['optimization=1']
# Checks of each pointer that is used double the time of compiling: the address sanitizer stops at null pointers itself. The
# full counts have them.
QUICK_CHECKS = ["cpp_args=['-fno-sanitize=null,alignment,vptr']"]
# Most of what a file takes to compile is its headers: many files at once share them. Developers build file by file.
UNITY = ['unity=on', 'unity_size=24']
# Torch-free programs run once, under the address sanitizer, but for these: optimisation may change what simd computes, and
# some cases of the others compute for minutes under a sanitizer.
ROOMS_BUILT_TWICE = ['simd', 'offload']
# These cases run in optimised code alone, but for the full counts: searches over thousands of plans, every order of a list,
# a long row of updates. Other cases go through the same code under the address sanitizer.
TOO_SLOW_FOR_ASAN = [
    'Refusal.SaysTheLeast*', 'Refusal.SeveralChanges*', 'Refusal.MoreThanTheMachine*', 'Refusal.MemoryThatNeeds*',
    'Refusal.TheLargestNumbers*', 'Refusal.WhatARefusal*', 'Refusal.WhatLeaves*', 'NvmeRefusal.TellsTheLeastSpace*',
    'NvmeRefusal.TellsTheSpace*', 'Nvme.MoreHostMemoryNever*', 'Nvme.GradientsFollow*', 'Nvme.WindowsShrink*',
    'Nvme.GradientsThatAreAdded*', 'Nvme.AreSpread*', 'Nvme.WeightsFollow*', 'Nvme.TheSpaceIsThat*',
    'Search.NoForcedChoice*', 'Search.MoreMemoryNever*', 'Simulation.OfManyMicroBatches*',
    'Plan.MoreHostMemoryChangesNothing*', 'PlanWithDrives.*', 'Ferry.RenewPresets*', 'RenewedPage.OfPresets*', 'UnlikeGpus.*',
    'PlanSearch.NoRival*', 'Simulation.ManyRanks*', 'Simulation.SlowLinks*', 'Simulation.APipeline*', 'Simulation.RanksWait*',
    'PlanChoosing.TheProfile*', 'PresetPlans.EachFits*', 'Ferry.PlanOfUnlikeGpus*', 'Ferry.PlanOfSeveralGpus*', 'PlantedFault.*',
    'Checker.AgreesWithEveryOrder*', 'Checker.FindsBytes*', 'Lists.HaveNoHazard*',
    'EveryFault.*serial*', 'EveryFault.*adversarial*',
    # Types of numbers and states share all of the code but the arithmetic; fp32 and the smallest states stay.
    *(f'*{suite}.*/{kind}' for suite in ('SameBits', 'SaveUnderSteps', 'PinUnderSteps', 'RanksTest')
      for kind in ('fp16*', 'fp32_sgd', 'fp32_adamw_bf16', 'bf16', 'bf16_split', 'bf16_lion', 'bf16_sgd*')), '*Pause.*/bf16',
    'ReducedEveryLevel.VFadesAtItsRate/scalar',
]
# The main part runs these cases alone of these programs: all others of them run sanitized. The address sanitizer forbids the
# library for NUMA.
ALSO_IN_MAIN = {'plan': TOO_SLOW_FOR_ASAN, 'cli': TOO_SLOW_FOR_ASAN, 'service': TOO_SLOW_FOR_ASAN,
                'offload': TOO_SLOW_FOR_ASAN + ['NumaDeathTest.*']}
# Their tests are built with LibTorch: with sanitizers that takes minutes of compiling.
ROOMS_OF_THE_TRAINER = ['engine', 'measure', 'train', 'parity', 'perf']
# Widgets draw with libraries that keep what they allocate until the process ends. gui_program measures what users have: the
# processor time and memory of the optimised app.
NOT_SANITIZED = ['gui_pages', 'gui_program', 'gui_screenshots', 'gui_whole_run']
# The app's models take two minutes to compile with sanitizers, and need the trainer in the main part. Golden plans take six
# minutes there, and other tests of plans go through the same code.
SANITIZED_WITH_FULL_COUNTS = ['gui_models', 'golden_plans']
# What threads share, by program and case: the rest has one thread. Planted faults are meant to race; oneTBB is not
# instrumented, so offload's own threads take its place.
CONCURRENT = {
    'offload': ['FaultDeathTest.*', 'ThreadedDevice.*', 'SimulatedDevice.*', 'AdversarialDevice.*', 'Throw.*', 'Watchdog.*',
                'Overlap.*', 'Workers.*', 'FirstTouch.*', 'HostQueue.*', 'CpuMath.*', '*Devices.*', 'EveryFault.*', '*Pause.*',
                'SameBits.WithThreads*', 'SameBits.WithAnyNumberOfWorkers*',  # the others take their queues in one thread
                'Traces.*', '*Pools.*',
                '*SaveUnderSteps.*/fp32', '*SaveUnderSteps.*/bf16_adamw_8bit_split', '*RanksTest.*/fp32',
                # Types of numbers share the same threads, and these devices have one; all of them run in the other parts.
                '-*/fp16', '*/bf16', 'EveryFault.*serial*', 'EveryFault.*adversarial*', '*Pause.*WithoutClippingToo*'],
    'files': ['SafetensorsWriter*', 'CheckpointWriter.*', 'AtomicFile.*', 'DirectWriter*', 'WriteError.*', 'AppendOnlyFile.*',
              '-DirectWriter.RunsOfAnyPlace*'],  # a minute of what the others do, too
    'nvme': ['EachTransport.*', 'BadDrive.ADriveThatStops*',
             '-*ReadsWhat*', '*SharesStripes*', '*CutShort*'],  # the same threads
    'store': ['StoreTest.*'],
    'runs': ['*'],
    'comm': ['ThreadComm.*', '*ThreadComms.*', 'PulseTest.*'],
    'data': ['TokenizeDataset.*'],
    'service': ['PlanAnswers.*', 'MetricsFile.WhileItIsWritten', 'SteeredRun.*', 'WatchedRun.*'],
}
# Minutes that a part takes on 2 idle cores without a compiler cache, doubled. A part that takes longer is said at the end, so
# that time is asked for in review and not found later; busy machines fail nobody.
BUDGETS_MINUTES = {'main build': 14, 'main tests': 20, 'asan build': 11, 'asan tests': 10, 'tsan build': 6, 'tsan tests': 8}
# The one test of the torch half that is built with sanitizers, for the full counts: the whole engine, streaming on the
# simulated device.
ENGINE_TEST, ENGINE_CASES = 'same_bits', 'SameBits.RunTwice:SameBits.OneMicroBatch:SameBits.TiedMaskedLmFp32'


class Test:
    """A test of a configured build directory: its room, its command's file, the files that it is built of, whether LibTorch is
    in it, and whether it is a program of the build or a script."""

    def __init__(self, name, room, program, outputs, has_torch, is_program):
        self.name, self.room, self.program, self.outputs = name, room, program, outputs
        self.has_torch, self.is_program = has_torch, is_program


class Tally:
    """What passed, failed and was skipped, and how long each piece of work took."""

    def __init__(self, budgets):
        self.budgets = budgets  # minutes of a piece of work
        self.passed = 0
        self.failed = []  # 'part: test'
        self.skipped = {}  # reason -> tests
        self.times = []  # (what, seconds, note)
        self.slow = []  # parts that took longer than their budget

    def skip(self, test, reason):
        self.skipped.setdefault(reason, []).append(test)

    def line(self):
        n_skipped = sum(len(tests) for tests in self.skipped.values())
        return f'{self.passed} passed, {len(self.failed)} failed, {n_skipped} skipped'


class Part:
    """Times what is done under it and says so when it begins and ends."""

    def __init__(self, tally, what):
        self.tally, self.what = tally, what

    def __enter__(self):
        print(f'=== {self.what}', flush=True)
        self.start = time.monotonic()
        self.before = self.tally.passed, len(self.tally.failed)

    def __exit__(self, kind, error, trace):
        seconds = time.monotonic() - self.start
        passed, failed = self.tally.passed - self.before[0], len(self.tally.failed) - self.before[1]
        note = f'{passed} passed' + (f', {failed} failed' if failed else '') if passed or failed else ''
        self.tally.times.append((self.what, seconds, note))
        budget = self.tally.budgets.get(self.what)
        if budget and seconds > 60 * budget:
            self.tally.slow.append(f'{self.what}: {seconds / 60:.1f} minutes, of {budget} that BUDGETS_MINUTES allows')
        print(f'=== {self.what}: {seconds:.0f} s {note}\n', flush=True)


def build(tally, part, directory, options=(), targets=(), env=None):
    """Builds; False, and a failure in the tally, where that does not go."""
    command = [ROOT / 'scripts/build', '--dir', directory, '--keep-going']
    for option in options:
        command += ['--option', option]
    log = ROOT / '.cache' / f'{directory}.ninja.log'
    log.parent.mkdir(exist_ok=True)
    with open(log, 'w') as out:
        done = subprocess.run(command + list(targets), stdout=out, stderr=subprocess.STDOUT,
                              env=dict(os.environ, FERRY_CUDA='1', **(env or {})))
    text = log.read_text(errors='replace')
    if done.returncode != 0:
        shown = [line for line in text.splitlines() if not re.match(r'\[\d+/\d+\]', line)]
        print('\n'.join(shown[-60:]))
        tally.failed.append(f'{part}: the build (all of its output in .cache/{log.name})')
    return done.returncode == 0


def introspect(directory):
    """The Tests of a configured build directory."""
    def read(what):
        return json.loads((ROOT / directory / 'meson-info' / f'intro-{what}.json').read_text())
    targets = {target['id']: target for target in read('targets')}
    build_dir = (ROOT / directory).resolve()
    tests = []
    for test in read('tests'):
        own = [targets[i] for i in test['depends'] if i in targets]
        outputs = [os.path.relpath(name, build_dir) for target in own for name in target['filename']]
        rooms = [Path(target['defined_in']).parent.name for target in own if '/tests/' in target['defined_in']]
        has_torch = any('torch/include' in flag for target in own for source in target['target_sources']
                        for flag in source.get('parameters', []))
        is_program = os.path.relpath(test['cmd'][0], build_dir) in outputs
        if any(test['name'] == other.name for other in tests):
            sys.exit(f"two tests are called {test['name']}: meson would run both where one is asked for")
        program = Path(test['cmd'][0]).name
        tests.append(Test(test['name'], rooms[0] if rooms else '', program, outputs, has_torch, is_program))
    return tests


def run_meson(tally, part, directory, tests, cases=None, env=None, patience=1):
    """Runs Tests of a build directory, of some by name the `cases` that GoogleTest filters choose alone, and adds each case to
    the tally. patience multiplies time limits."""
    filters = '\n'.join(f"{test.program} {':'.join(cases[test.name])}" for test in tests if test.name in (cases or {}))
    build_dir = ROOT / directory
    for old in build_dir.glob('*.xml'):  # a test that crashes writes none, and must not find its last one
        old.unlink()
    logs = build_dir / 'meson-logs'
    for old in logs.glob('testlog*'):
        old.unlink()
    subprocess.run([VENV / 'bin/meson', 'test', '-C', build_dir, '--no-rebuild', '--print-errorlogs',
                    '--num-processes', str((os.cpu_count() or 1) + 1),  # many tests wait for processes, disks and deadlines
                    '--timeout-multiplier', str(patience), '--wrapper', str(CASES_OF_PROGRAM)]
                   + [test.name for test in tests],
                   # Programs share the cores: threads that wait spin for microseconds only.
                   # (Not at all, OMP_WAIT_POLICY=passive, is ten times slower where layers are small.)
                   env=dict(os.environ, GOMP_SPINCOUNT='300', FERRY_CASES=filters, **(env or {})))
    programs = {}
    log = logs / f'testlog-{CASES_OF_PROGRAM.name}.json'  # Meson adds the name of what wraps the tests
    if log.exists():
        for line in log.read_text().splitlines():
            record = json.loads(line)
            programs[record['name'].split(' / ')[-1]] = record
    if not programs:
        tally.failed.append(f'{part}: no test ran')
        return
    results = read_cases(log.with_suffix('.junit.xml'))
    for name, record in programs.items():
        add_program(tally, part, name, record, results.get(name, []))
    slowest = sorted(programs.values(), key=lambda record: -record['duration'])[:5]
    print('slowest: ' + ', '.join(f"{r['name'].split(' / ')[-1]} {r['duration']:.0f} s" for r in slowest))


def read_cases(junit):
    """{program: [(case, 'passed' | 'failed' | reason of the skip)]} of the programs that write cases."""
    cases = {}
    if not junit.exists():
        return cases
    for suite in ElementTree.parse(junit).getroot().iter('testsuite'):
        parts = suite.get('name').split('.', 2)
        if len(parts) < 3:
            continue  # one result a program: the record of the program says it
        for case in suite.iter('testcase'):
            if case.get('status') == 'notrun':
                continue
            skip = case.find('skipped')
            if case.find('failure') is not None or case.find('error') is not None:
                result = 'failed'
            elif skip is not None:
                result = (skip.get('message') or skip.text or '').strip().splitlines()[-1:] or ['no reason given']
                result = 'skipped: ' + result[0]
            else:
                result = 'passed'
            cases.setdefault(parts[1].split(' / ')[-1], []).append((f"{parts[2]}.{case.get('name')}", result))
    return cases


def add_program(tally, part, name, record, cases):
    """One test program's cases, or itself where it has none."""
    n_failed_before = len(tally.failed)
    for case, result in cases:
        if result == 'failed':
            tally.failed.append(f'{part}: {name} {case}')
        elif result == 'passed':
            tally.passed += 1
        else:
            tally.skip(f'{name} {case}', result.removeprefix('skipped: '))
    if record['result'] in ('OK', 'EXPECTEDFAIL'):
        if not cases:
            tally.passed += 1
    elif record['result'] == 'SKIP':
        if not cases:
            said = record.get('stdout', '').strip().splitlines()
            tally.skip(name, said[-1].removeprefix('skipped: ') if said else 'no reason given')
    elif len(tally.failed) == n_failed_before:
        # It crashed, ran out of time, or ended badly after its last case (a leak found at exit).
        tally.failed.append(f"{part}: {name} as a whole ({record['result']}, exit {record.get('returncode')})")


# --- the parts ------------------------------------------------------------------------------------------------------

def part_format(tally, arguments):
    with Part(tally, 'format'):
        files = subprocess.run(['git', 'ls-files', '*.cpp', '*.h', '*.cu', '*.cuh'], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout.split()
        files = [name for name in files if (ROOT / name).exists()]
        # The environment's, at the version the tree is formatted with: others break lines elsewhere.
        tool = VENV / 'bin/clang-format'
        done = subprocess.run([tool, '--dry-run', '-Werror'] + files, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        out_of_form = sorted({line.split(':', 1)[0] for line in done.stderr.splitlines() if ': error: ' in line})
        if done.returncode == 0 and files:
            tally.passed += 1
        else:
            print('\n'.join(out_of_form) or done.stderr)
            tally.failed.append(f'format: {len(out_of_form)} files; {VENV.name}/bin/clang-format -i FILE... mends them')


def part_main(tally, arguments):
    """Everything, warnings being errors; all tests but those that the address sanitizer's part runs."""
    with Part(tally, 'main build'):
        options = ['tests=true'] + UNITY
        if not build(tally, 'main', 'build-test', options, ['build.ninja']):
            return
        chosen = [test for test in introspect('build-test') if runs_in_main(test)]
        targets = default_outputs('build-test', {output for test in chosen for output in test.outputs})
        build(tally, 'main', 'build-test', options, targets)
    with Part(tally, 'main tests'):
        built = [test for test in chosen if is_built(test, 'build-test')]
        cases = {} if has_gpu() or arguments.long else ALSO_IN_MAIN
        run_meson(tally, 'main', 'build-test', built, cases, patience=12 if arguments.long else 2)


def runs_in_main(test):
    """LibTorch's tests, scripts, and what differs in optimised code; where there is a GPU all, since no sanitizer runs there."""
    return (not runs_in_asan(test) or test.room in ROOMS_BUILT_TWICE or test.name in ALSO_IN_MAIN or has_gpu())


def runs_in_asan(test):
    return (test.is_program and not test.has_torch and test.room not in ROOMS_OF_THE_TRAINER
            and test.name not in NOT_SANITIZED + ([] if 'FERRY_LONG' in os.environ else SANITIZED_WITH_FULL_COUNTS))


def has_gpu():
    return Path('/dev/nvidiactl').exists()


def default_outputs(directory, of_chosen_tests):
    """What a build makes by default, of the programs under tests/ the chosen tests' alone."""
    targets = json.loads((ROOT / directory / 'meson-info' / 'intro-targets.json').read_text())
    build_dir = (ROOT / directory).resolve()
    outputs = {os.path.relpath(name, build_dir) for target in targets if target['build_by_default']
               and target['type'] in ('executable', 'static library', 'shared library', 'shared module')
               and not ('/tests/' in target['defined_in'] and target['type'] == 'executable') for name in target['filename']}
    return sorted(outputs | of_chosen_tests)


def part_isa(tally, arguments):
    """Baseline x86-64 everywhere, but for the files of one instruction set that are chosen at run time."""
    with Part(tally, 'isa'):
        directory = ROOT / 'build-test'
        commands = directory / 'compile_commands.json'
        commands = json.loads(commands.read_text()) if commands.exists() else []
        n_checked = 0
        for command in commands:
            path = directory / command['output']
            if command['output'].startswith('tests/') or path.suffix != '.o' or not path.exists():  # headers hold no code
                continue
            leaks = leaks_of_isa_object(path) if '-mavx' in command['command'] else beyond_baseline(path)
            n_checked += 1
            if leaks:
                tally.failed.append(f"isa: {command['output']}: {', '.join(sorted(leaks)[:5])}")
        if not n_checked:
            tally.skip('isa', 'nothing is built in build-test: the main part does that')
        elif not any(failure.startswith('isa: ') for failure in tally.failed):
            tally.passed += 1


def beyond_baseline(path):
    """The functions of an object file that hold AVX instructions."""
    listing = subprocess.run(['objdump', '-d', '-C', '--no-show-raw-insn', path], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    function, leaks = '', set()
    vex = re.compile(r'\t(?!ver[rw]\b)(v[a-z]|[a-z0-9]+ .*%[yz]mm)')
    for line in listing.splitlines():
        if line.endswith('>:'):
            function = line.split('<', 1)[1][:-2]
        elif vex.search(line):
            leaks.add(function)
    return leaks


def leaks_of_isa_object(path):
    """What an object file of one instruction set shares with others: the linker keeps one copy of an inline function, and
    it may be this one. Names that carry the instruction set are its own."""
    symbols = subprocess.run(['nm', '-C', '--defined-only', '--extern-only', path], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    return {line.split(' ', 2)[2] for line in symbols.splitlines()
            if line.split(' ')[1] in 'TWu' and not re.search('avx2|avx512|fma3', line, re.IGNORECASE)}


def part_asan(tally, arguments):
    """Address and undefined-behaviour sanitizers: the torch-free programs, and with the full counts the whole engine."""
    options = ['b_sanitize=address,undefined', 'b_lundef=false', 'tests=true'] + QUICK_TO_COMPILE + UNITY
    env = {'FERRY_CPU': '1',
           'ASAN_OPTIONS': 'detect_stack_use_after_return=1:strict_string_checks=1',
           'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1'}
    if arguments.long:
        # LibTorch keeps what it allocates for the process; the leaks of Ferry's own are looked for without it.
        engine_env = dict(env, ASAN_OPTIONS=env['ASAN_OPTIONS'] + ':detect_leaks=0', GTEST_FILTER=ENGINE_CASES,
                          FERRY_SANITIZED='1')
        groups = [(env, runs_in_asan), (engine_env, lambda test: test.name == ENGINE_TEST)]
    else:
        options += ['trainer=false'] + QUICK_CHECKS
        groups = [(dict(env, GTEST_FILTER='-' + ':'.join(TOO_SLOW_FOR_ASAN)), runs_in_asan)]
    sanitized_part(tally, arguments, 'asan', 'build-asan', options, groups)


def part_tsan(tally, arguments):
    """The thread sanitizer on what threads share: how bytes move, files that are written behind the steps, a run's socket."""
    options = ['b_sanitize=thread', 'b_lundef=false', 'tests=true', 'trainer=false'] + QUICK_TO_COMPILE + UNITY
    env = {'FERRY_CPU': '1', 'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1'}
    sanitized_part(tally, arguments, 'tsan', 'build-tsan', options, [(env, lambda test: test.name in CONCURRENT)], CONCURRENT)


def is_built(test, directory):
    return all((ROOT / directory / output).exists() for output in test.outputs)


def sanitized_part(tally, arguments, part, directory, options, groups, cases=None):
    """Builds and runs groups of tests, (environment, which tests) each; of some by name, these cases alone."""
    with Part(tally, f'{part} build'):
        if not build(tally, part, directory, options, ['build.ninja'], groups[0][0]):
            return
        tests = introspect(directory)
        chosen = [(env, [test for test in tests if wanted(test)]) for env, wanted in groups]
        for _, group in chosen:
            if not group:
                tally.failed.append(f'{part}: a test that is to run is not there')
        targets = sorted({output for _, group in chosen for test in group for output in test.outputs})
        build(tally, part, directory, options, targets, groups[0][0])
    with Part(tally, f'{part} tests'):
        for env, group in chosen:
            built = [test for test in group if is_built(test, directory)]
            if built:
                run_meson(tally, part, directory, built, cases, env, patience=40 if arguments.long else 5)


def part_fuzz(tally, arguments):
    """A minute of libFuzzer on each reader of files, with the full counts only."""
    if not arguments.long and 'fuzz' not in (arguments.only or []):
        return
    if not shutil.which('clang++'):
        tally.skip('fuzz', 'libFuzzer is a part of clang, and there is no clang++')
        return
    with Part(tally, 'fuzz'):
        if subprocess.run([ROOT / 'scripts/fuzz']).returncode == 0:
            tally.passed += 1
        else:
            tally.failed.append('fuzz: scripts/fuzz says which reader failed, and keeps what it read')


def part_plain(tally, arguments):
    """The build that scripts/build makes by default, file by file, with the full counts only: units of many files hide what a
    file forgets to include."""
    if not arguments.long and 'plain' not in (arguments.only or []):
        return
    with Part(tally, 'plain'):
        if build(tally, 'plain', 'build-plain', ['tests=false'], env={'FERRY_CPU': '1'}):
            tally.passed += 1


PARTS = {'format': part_format, 'main': part_main, 'isa': part_isa, 'asan': part_asan, 'tsan': part_tsan,
         'fuzz': part_fuzz, 'plain': part_plain}


def main():
    parser = argparse.ArgumentParser(prog='scripts/test', description='Builds what is missing and passes every test.')
    parser.add_argument('--long', action='store_true', help='the full counts, in place of a seeded sample of them')
    parser.add_argument('--only', action='append', choices=PARTS, metavar='PART', help='one part: ' + ', '.join(PARTS))
    arguments = parser.parse_args()
    done = subprocess.run([ROOT / 'scripts/setup', '--tests'] + (['--decoder'] if arguments.long else []))
    if done.returncode != 0:
        sys.exit(done.returncode)  # it said why
    if arguments.long:
        os.environ['FERRY_LONG'] = '1'
    tally = Tally({} if arguments.long else BUDGETS_MINUTES)
    for name, part in PARTS.items():
        if not arguments.only or name in arguments.only:
            part(tally, arguments)

    print('What each part took')
    for what, seconds, note in tally.times:
        print(f'  {what:<14} {seconds / 60:6.1f} min  {note}')
    print(f'  {"in all":<14} {sum(seconds for _, seconds, _ in tally.times) / 60:6.1f} min')
    for reason, tests in tally.skipped.items():
        print(f'Skipped: {reason} ({len(tests)}: {", ".join(tests[:3])}{", ..." if len(tests) > 3 else ""})')
    for part in tally.slow:
        print(f'Slow: {part}')
    for failure in tally.failed:
        print(f'Failed: {failure}')
    print(tally.line(), flush=True)
    sys.exit(1 if tally.failed or tally.passed == 0 else 0)


if __name__ == '__main__':
    main()
