#!/usr/bin/env python3
"""What checkpoints cost the steps beside them, from one run's metrics.jsonl.

    ferry train ... --save-steps 20 --output-dir RUN
    tests/perf/checkpoint_cost.py RUN

The time of a step is from its line to the next. A save spans the steps from the one it follows to
the first that ends after it. Added is what these took beyond the median step of those that no save
touched. The bar is 0.1 of the steps' time, or, where the disk is slower than that, 1.1 times the
bytes over the disk's speed (measured here, beside the run) less the steps' time.
"""
import json
import mmap
import os
import statistics
import sys
import time
from pathlib import Path


def write_speed(directory, n_bytes=512 << 20, piece=4 << 20):
    """Bytes a second, past the page cache where the file system can, synced at the end."""
    path = directory / '.write_speed'
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        fd = os.open(path, flags | os.O_DIRECT)
    except OSError:
        fd = os.open(path, flags)
    buffer = mmap.mmap(-1, piece)
    buffer.write(os.urandom(piece))
    try:
        start = time.monotonic()
        for _ in range(n_bytes // piece):
            os.write(fd, buffer)
        os.fsync(fd)
        return n_bytes / (time.monotonic() - start)
    finally:
        os.close(fd)
        path.unlink()


def main():
    run = Path(sys.argv[1])
    lines = [json.loads(line) for line in (run / 'metrics.jsonl').open()]
    ends = {line['step']: line['time'] for line in lines if 'loss' in line}
    saves = [line for line in lines if 'save_seconds' in line]
    spans = []
    for save in saves:
        steps = [s for s in ends if s > save['step']]
        last = next((s for s in steps if ends[s] >= ends[save['step']] + save['save_seconds']), None)
        if last is not None:
            spans.append((save, last))
    touched = {s for save, last in spans for s in range(save['step'], last + 1)}
    touched |= {s for save in saves for s in (save['step'], save['step'] + 1)}
    free = [ends[s] - ends[s - 1] for s in ends if s - 1 in ends and s > 3 and s not in touched]
    if not spans or len(free) < 10:
        sys.exit(f'{len(spans)} saves with steps after them and {len(free)} free steps: too few')
    step = statistics.median(free)
    speed = statistics.median(write_speed(run) for _ in range(3))
    print(f'step {step * 1e3:.0f} ms (median of {len(free)}), disk {speed / 1e6:.0f} MB/s')
    shares, over = [], []
    for save, last in spans:
        n = last - save['step']
        added = ends[last] - ends[save['step']] - n * step
        allowed = max(0.1 * n * step, 1.1 * save['save_bytes'] / speed - n * step)
        shares.append(added / (n * step))
        over.append(added / allowed)
        megabytes, seconds = save['save_bytes'] / 1e6, save['save_seconds']
        print(f'after step {last - n}: {megabytes:.0f} MB in '
              f'{seconds:.2f} s, spans {n} steps, added {added * 1e3:.0f} ms = '
              f'{added / (n * step):.3f} of them; allowed {allowed * 1e3:.0f} ms')
    print(f'median share added {statistics.median(shares):.3f}; '
          f'median of added / allowed {statistics.median(over):.2f}')


if __name__ == '__main__':
    main()
