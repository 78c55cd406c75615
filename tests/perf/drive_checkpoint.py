#!/usr/bin/env python3
"""What a checkpoint costs whose states lie on a drive, beside a copy of as many bytes.

    tests/perf/drive_checkpoint.py FERRY DIRECTORY [LAYERS]

FERRY trains a BERT shape of 50 M parameters a layer (20 by itself: 1.0 G) with weights drawn anew,
8-bit Adam and all states in DIRECTORY, with a checkpoint after each of three steps of one short
text, on the CPU. Printed are the seconds and bytes of each checkpoint (a pin writes 8 KiB more into
the store), the bytes that a step moves, and what `cp` takes for as many bytes as a step writes,
synced. DIRECTORY needs 32 bytes a parameter; nothing is left there.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'red', 'green', 'the', 'old', 'car']
STEPS = 3


def write_shape(directory, n_layers):
    directory.mkdir()
    (directory / 'vocab.txt').write_text('\n'.join(WORDS) + '\n')
    (directory / 'config.json').write_text(json.dumps({
        'model_type': 'bert', 'architectures': ['BertModel'], 'vocab_size': len(WORDS),
        'hidden_size': 2048, 'num_hidden_layers': n_layers, 'num_attention_heads': 16,
        'intermediate_size': 8192, 'max_position_embeddings': 64, 'type_vocab_size': 2,
        'hidden_act': 'gelu', 'layer_norm_eps': 1e-12, 'hidden_dropout_prob': 0.1,
        'attention_probs_dropout_prob': 0.1, 'pad_token_id': 0, 'initializer_range': 0.02}))


def lines_of(run):
    try:
        text = (run / 'metrics.jsonl').read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]


def size_of(directory):
    """Of all files, while some may go."""
    size = 0
    for file in directory.rglob('*'):
        try:
            size += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            pass
    return size


def train(ferry, place, n_layers):
    """Runs until there are as many checkpoints: the run's directory, and the bytes of each."""
    write_shape(place / 'shape', n_layers)
    (place / 'train.tsv').write_text('text\tlabel\n' + 'the old car\tred\nthe red car\tgreen\n' * 8)
    (place / 'drive').mkdir()
    run = place / 'run'
    process = subprocess.Popen([
        ferry, 'train', '--config-name', place / 'shape', '--dataset', place / 'train.tsv',
        '--device', 'cpu', '--optim', 'adamw_8bit', '--placement', 'nvme',
        '--nvme-path', place / 'drive', '--train-batch-size', '1', '--max-length', '8',
        '--max-steps', '1000', '--save-steps', '1', '--save-total-limit', '1',
        '--logging-steps', '1', '--output-dir', run])
    files = {}
    try:
        while sum('save_seconds' in line for line in lines_of(run)) < STEPS:
            for complete in run.glob('checkpoint-*/COMPLETE'):
                files[complete.parent.name] = size_of(complete.parent)
            if process.poll() is not None:
                sys.exit(f'the run ended with {process.returncode}')
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    return run, files


def seconds_of_copy(store, n_bytes, place):
    """`cp` of a file with the states' bytes, and a sync of the copy."""
    source, copy = place / 'drive/source', place / 'drive/copy'
    with source.open('wb') as file:
        subprocess.run(['head', '-c', str(n_bytes), store], stdout=file, check=True)
        os.fsync(file.fileno())
    store.unlink()  # its space is needed
    start = time.monotonic()
    subprocess.run(['cp', source, copy], check=True)
    subprocess.run(['sync', copy], check=True)
    return time.monotonic() - start


def main():
    ferry, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    n_layers = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    place = Path(tempfile.mkdtemp(prefix='drive_checkpoint.', dir=directory))
    try:
        run, files = train(ferry, place, n_layers)
        lines, about = lines_of(run), json.loads((run / 'run.json').read_text())
        need, store = about['plan']['nvme'], Path(about['nvme_store']['files'][0]['path'])
        moved = need['step_read_bytes'] + need['step_written_bytes']
        ends = [line['time'] for line in lines if 'loss' in line]
        steps = [b - a for a, b in zip(ends, ends[1:])]
        saves = [line for line in lines if 'save_seconds' in line]
        print(f'{n_layers * 50.36e6 / 1e9:.2f} G parameters; a step reads '
              f'{need["step_read_bytes"] / 1e9:.2f} GB and writes '
              f'{need["step_written_bytes"] / 1e9:.2f} GB, {statistics.median(steps):.1f} s')
        for save in saves:
            name = f'checkpoint-{save["step"]}'
            print(f'{name}: {save["save_seconds"]:.3f} s, {files.get(name, 0) / 1e3:.1f} kB of '
                  f'files, {files.get(name, 0) / moved:.5%} of the bytes that a step moves')
        n_bytes = need['step_written_bytes']
        took = seconds_of_copy(store, n_bytes, place)
        print(f'cp of {n_bytes / 1e9:.2f} GB, synced: {took:.1f} s')
    finally:
        shutil.rmtree(place)


if __name__ == '__main__':
    main()
