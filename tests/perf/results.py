"""The rows of a work, the best of them, and the table that tests/perf/RESULTS.md keeps."""
import datetime
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Row:
    """What ran, as the table names it; of a peer also what is approximate about it, nothing where it is exact."""

    title: str
    result: dict = field(default_factory=dict)
    approximation: str = ""
    is_peer: bool = False

    @property
    def rate(self):
        """Samples a second."""
        return self.result["samples_per_s"]

    @property
    def ran(self):
        return "samples_per_s" in self.result


def best_of(rows, exact):
    """The fastest peer that does the same work, or the fastest of the others; None where none ran."""
    ran = [row for row in rows if row.ran and bool(row.approximation) != exact]
    return max(ran, key=lambda row: row.rate, default=None)


def first_line_of(*command):
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=Path(__file__).parent)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip().splitlines()[0] if said.returncode == 0 and said.stdout.strip() else ""


def conditions():
    """When, on what, at which commit; what cannot be told is named as not known."""
    card = first_line_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader") or "card not known"
    commit = first_line_of("git", "rev-parse", "--short", "HEAD") or "commit not known"
    return f"{card}, {datetime.date.today().isoformat()}, {commit}"


def gib(result, key):
    return f"{result[key] / 2**30:.1f}" if key in result else ""


def markdown(name, work, rows, rate):
    """A section of RESULTS.md: every row, the best exact peer in bold, and all commands."""
    best = best_of([row for row in rows if row.is_peer], exact=True)
    unit = "tokens/s" if "llama" in work["shape"] or "gpt" in work["shape"] else "samples/s"
    said = [f"### {work['what']}", "", f"{conditions()}; `--work {name}`; a `~` marks a peer whose work is approximate.", "",
            f"| program | {unit} | Ferry's over it | GPU GiB | host GiB | kJ |", "|---|---|---|---|---|---|"]
    for row in rows:
        result = row.result
        if not row.ran:
            why = "out of memory" if result.get("out_of_memory") else result.get("error", "not installed")
            said.append(f"| {row.title} | {' '.join(why.split())[:80].replace('|', '/')} | | | | |")
            continue
        figure = result["tokens_per_s"] if unit == "tokens/s" else row.rate
        over = f"{rate / row.rate:.2f}" if row.is_peer and rate else ""
        if row is best:
            over = f"**{over}**"
        joules = result.get("joules")
        energy = f"{joules / result['n_tokens'] * 1e3:.1f}" if joules else ""
        said.append(f"| {row.title} | {figure:.{0 if unit == 'tokens/s' else 1}f} | {over} | {gib(result, 'gpu_bytes_max')} | "
                    f"{gib(result, 'host_bytes_max')} | {energy} |")
    commands = [f"    {row.result['command']}" for row in rows if row.result.get("command")]
    return "\n".join([*said, "", "Commands, in this order:", "", *commands, "", ""])
