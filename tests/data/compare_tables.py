#!/usr/bin/env python3
"""Asserts that Parquet and Arrow files are read as the JSONL file of the same rows, and damaged ones are refused.

compare_tables.py READ_TEXTS FERRY; called by Meson. Quick: 60 cuts and 200 changed bytes a file; FERRY_LONG=1: 10 times as
many. Exits with 77 (skipped) and a reason where pyarrow is absent.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

READ_TEXTS, FERRY = sys.argv[1:]
MANY = 10 if os.environ.get("FERRY_LONG") == "1" else 1
TEXTS = ["plain", 'a "quote" and a \\', "line\nend\ttab \u0001", "h\u00e9 \U0001f40e", "x" * 5000]


def rows_of(column):
    return [{"text": TEXTS[i % 5] + f" {i}", "label": column[i % len(column)]} for i in range(5000)]


def cases():
    """Name, form, rows, and the types that a table may have for them."""
    texts = {"string": pa.string(), "large_string": pa.large_string(), "dictionary": pa.dictionary(pa.int16(), pa.string())}
    for name, kind in texts.items():
        yield f"texts_{name}", "texts", rows_of(["b", "a", "c"]), {"text": kind, "label": kind}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        yield name, "texts", rows_of([3, 1, 2]), {"text": pa.string(), "label": getattr(pa, name)()}
    for name in ("float32", "float64"):
        yield name, "texts", rows_of([0.5, 1.0, -2.25e-7]), {"text": pa.string(), "label": getattr(pa, name)()}
    yield "bool", "texts", rows_of([True, False]), {"text": pa.string(), "label": pa.bool_()}
    for name, kind in {"list": pa.list_(pa.string()), "large_list": pa.large_list(pa.string())}.items():
        yield name, "texts", rows_of([["a", "b"], [], ["b"]]), {"text": pa.string(), "label": kind}
    words = [{"tokens": ["EU", f"w{i}"], "ner_tags": [i % 3, 0], "bytes": None} for i in range(50)]
    yield "words", "words", words, {"tokens": pa.list_(pa.string()), "ner_tags": pa.list_(pa.int64()),
                                    "bytes": pa.binary()}
    answers = [{"text": ["Ann"], "answer_start": [0]}, {"text": [], "answer_start": []}]
    questions = [{"id": str(i), "question": f"Who {i}?", "context": "Ann found it.", "answers": answers[i % 2]}
                 for i in range(50)]
    yield "questions", "questions", questions, {
        "id": pa.string(), "question": pa.string(), "context": pa.string(),
        "answers": pa.struct({"text": pa.list_(pa.string()), "answer_start": pa.list_(pa.int32())})}


def check_names(directory):
    """The names of labels that the datasets library writes into a schema."""
    features = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"}}
    for form, column, feature in (("texts", [1, 0, -1, 1], features["label"]),
                                  ("words", [[1, 0], [0, 0], [1, -1], [0, 1]],
                                   {"feature": features["label"], "_type": "List"})):
        rows = {"text": ["a", "b", "c", "d"], "label": column}
        names = {"text": "text", "label": "label"}
        if form == "words":
            rows = {"tokens": [["u", "v"]] * 4, "ner_tags": column}
            names["label"] = "ner_tags"
        info = {"info": {"features": {names["label"]: feature}}}
        table = pa.table(rows).replace_schema_metadata({"huggingface": json.dumps(info)})
        for name, write in WRITERS.items():
            path = directory / f"names_{form}.{name}"
            write(table, path)
            result = read(form, path)
            assert result.returncode == 0, result.stderr
            assert json.loads(result.stdout.splitlines()[-1]) == ["neg", "pos"], (name, result.stdout)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


WRITERS = {
    "snappy.parquet": lambda table, path: pa.parquet.write_table(table, path, row_group_size=1500),
    "zstd.parquet": lambda table, path: pa.parquet.write_table(table, path, compression="zstd"),
    "stream.arrow": write_stream,
    "file.arrow": write_file,
    "lz4.feather": lambda table, path: pa.feather.write_feather(table, path, compression="lz4"),
}


def read(form, path):
    return subprocess.run([READ_TEXTS, form, path], capture_output=True, text=True)


def check_damage(form, path, directory, rng):
    """Whatever is wrong, the answer is rows or exit code 4 with the file's name: no crash."""
    data = path.read_bytes()
    damaged = directory / f"damaged{path.suffix}"
    n_refused = 0
    for i in range(260 * MANY):
        if i < 60 * MANY:
            bytes_now = data[: rng.randrange(len(data))]
        else:
            bytes_now = bytearray(data)
            for _ in range(rng.choice((1, 8))):
                bytes_now[rng.randrange(len(data))] = rng.randrange(256)
        damaged.write_bytes(bytes_now)
        got = read(form, damaged)
        assert got.returncode in (0, 4), (path.name, i, got.returncode, got.stderr[-500:])
        # A stream may end after any of its batches.
        if i < 60 * MANY and "stream" not in path.name:
            assert got.returncode == 4, (path.name, i)
        if got.returncode == 4:
            assert "damaged" in got.stderr, got.stderr
            n_refused += 1
    return n_refused


def check_bounds(directory):
    """Some kilobytes that stand for gigabytes, or for rows without end, are refused by name."""
    big = pa.array(["a" * (64 << 20)], pa.string())
    many = pa.DictionaryArray.from_arrays(pa.array([0] * 40, pa.int32()), big)
    tables = {"texts": (pa.table({"text": many, "label": pa.array(["a", "b"] * 20)}), "cap exceeded"),
              "rows": (pa.table({"text": pa.array([""] * 3_000_000), "label": pa.array(["a"] * 3_000_000)}), "rows in")}
    for name, (table, reason) in tables.items():
        path = directory / f"bound_{name}.parquet"
        # The schema that Arrow keeps would have the texts read as the one that they are.
        pa.parquet.write_table(table, path, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30,
                               write_statistics=False)
        assert path.stat().st_size < 200_000, path.stat()
        got = read("texts", path)
        assert got.returncode == 4 and f"'{path}' cannot be read as Parquet" in got.stderr, (name, got)
        assert reason in got.stderr, (name, got.stderr)


def check_cut_file(directory):
    """A user of a file that was cut off is told so."""
    path = directory / "cut.parquet"
    pa.parquet.write_table(pa.Table.from_pylist([{"text": f"text {i}", "label": "ab"[i % 2]} for i in range(3000)]), path)
    whole = path.read_bytes()
    command = [FERRY, "plan", "--model", "bert-base-uncased", "--dataset", path]
    for cut in (len(whole), len(whole) - 100, len(whole) // 2, 3):
        path.write_bytes(whole[:cut])
        run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"XDG_DATA_HOME": str(directory)})
        if cut == len(whole):
            assert run.returncode == 0 and "is column 'text'" in run.stderr, run
        else:
            assert run.returncode == 4 and f"'{path}' cannot be read as Parquet" in run.stderr, run
            assert "is it complete, and of that format?" in run.stderr, run


def main():
    rng = random.Random(7)
    n_files = n_refused = 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for case, form, rows, types in cases():
            plain = directory / f"{case}.jsonl"
            plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
            expected = read(form, plain)
            assert expected.returncode == 0, expected.stderr
            table = pa.table({key: pa.array([row[key] for row in rows], kind) for key, kind in types.items()})
            for ending, write in WRITERS.items():
                path = directory / f"{case}.{ending}"
                write(table, path)
                got = read(form, path)
                assert got.returncode == 0, (path.name, got.stderr)
                assert got.stdout == expected.stdout, path.name
                n_files += 1
            both = read(form, f"{directory}/{case}.*.parquet")
            assert both.returncode == 0 and both.stdout.count("\n") == 2 * len(rows) + 1, both.stderr
        small = [{"text": f"text {i}", "label": "ab"[i % 2]} for i in range(300)]
        for ending, write in WRITERS.items():
            path = directory / f"small.{ending}"
            write(pa.Table.from_pylist(small), path)
            n_refused += check_damage("texts", path, directory, rng)
        check_cut_file(directory)
        check_bounds(directory)
        check_names(directory)
        text = pa.array([b"\xff\xfe", b"ok"], pa.binary()).view(pa.string())
        pa.parquet.write_table(pa.table({"text": text, "label": ["a", "b"]}), directory / "latin.parquet")
        got = read("texts", directory / "latin.parquet")
        assert got.returncode == 4 and "UTF" in got.stderr, got
    print(f"{n_files} tables as their JSONL files, {n_refused} damaged ones refused")


if __name__ == "__main__":
    main()
