"""All comparisons with transformers in one process, which loads it once.

    all.py PARITY_DUMP TRAIN_DUMP MADE_DUMP FERRY FERRY_TRAINER

Exits 1 when one failed, 77 when a package is missing."""
import sys
import traceback

import adapters, compare, compare_exported, compare_steps, compare_tasks, drawn, families, generate, made, preferences, prompts, shakespeare


def outcome(main, arguments):
    """The exit code of one comparison; a fault in it is a failure of its own and no end of the others."""
    sys.argv = arguments
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def main():
    parity_dump, train_dump, made_dump, ferry, trainer = sys.argv[1:]
    codes = {}
    for name, module, programs in (("with transformers", compare, [parity_dump]),
                                   ("ten steps like transformers", compare_steps, [train_dump]),
                                   ("families like transformers", families, [parity_dump, train_dump]),
                                   ("adapters like their formula", adapters, [train_dump]),
                                   ("pairs of answers like TRL's formulas", preferences, [train_dump]),
                                   ("prompts like OpenPrompt's formulas", prompts, [train_dump]),
                                   ("made models like transformers", made, [made_dump]),
                                   ("drawn like transformers", drawn, [ferry]),
                                   ("a text learned like transformers", shakespeare, ["small", ferry]),
                                   ("generation like transformers", generate, [ferry]),
                                   ("exported like transformers", compare_exported, [ferry, trainer]),
                                   ("tags and answers like transformers", compare_tasks, [ferry, trainer])):
        print(f"=== {name}", flush=True)
        codes[name] = outcome(module.main, [module.__file__] + programs)
    for name, code in codes.items():
        print(f"{name}: {'passed' if code == 0 else f'exit {code}'}")
    sys.exit(1 if any(codes.values()) else 0)


if __name__ == "__main__":
    main()
