"""Renders chats by templates with Ferry and with transformers, and compares the texts and the marked parts.

    compare_templates.py RENDER_CHATS DIRECTORY [LEAST_SHARE]

DIRECTORY holds *.jinja. A text that differs from transformers', or one where transformers raises, is a fault in each case; a chat that Ferry refuses and
transformers does not counts against LEAST_SHARE. Exits with 77 (skipped) and a reason where something is missing."""
import datetime, json, pathlib, subprocess, sys

try:
    import jinja2
    from transformers.utils import chat_template_utils
except ImportError as e:
    print(f"skipped: {e}; scripts/setup --tests installs it")
    sys.exit(77)
import chats

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def truth_of(template, variables):
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        text, marked = chat_template_utils._render_with_assistant_indices(compiled_template=compiled, **variables)
        return {"text": text, "generated": [list(span) for span in marked if span[0] < span[1]]}
    except Exception as e:
        return {"raised": f"{type(e).__name__}: {e}"}


def in_characters(answer):
    if "generated" in answer:
        data = answer["text"].encode()
        answer["generated"] = [[len(data[:at].decode()) for at in span] for span in answer["generated"]]
    return answer


def main():
    program, directory = sys.argv[1:3]
    least = float(sys.argv[3]) if len(sys.argv) > 3 else 0.995
    files = sorted(pathlib.Path(directory).glob("*.jinja"))
    if not files:
        print(f"skipped: {directory} holds no templates; scripts/setup brings them")
        sys.exit(77)
    cases = []
    for file in files:
        template = file.read_text()
        for messages, tools, prompt, more in chats.conversations():
            cases.append((file.name, {"template": template, "variables": {**TOKENS, **more, "messages": messages, "tools": tools, "documents": None, "add_generation_prompt": prompt}}))
    done = subprocess.run([program], input="".join(json.dumps(case) + "\n" for _, case in cases), text=True, stdout=subprocess.PIPE)
    if done.returncode == 77:
        print("skipped: this build has no engine for chat templates; scripts/setup installs it")
        sys.exit(77)
    answers = [in_characters(json.loads(line)) for line in done.stdout.split("\n") if line]
    assert len(answers) == len(cases), (len(answers), len(cases), done.returncode)
    n_equal = n_both = n_refused = n_wrong = 0
    shown = {}
    for (name, case), answer in zip(cases, answers):
        truth = truth_of(case["template"], case["variables"])
        if "raised" in truth and "raised" in answer:
            n_both += 1
        elif truth == answer:
            n_equal += 1
        else:
            n_wrong += "raised" not in answer
            n_refused += "raised" in answer
            shown.setdefault((name, "raised" in answer), []).append((case["variables"], truth, answer))
    for (name, is_refused), found in shown.items():
        print(f"--- {name}: {len(found)} {'refused' if is_refused else 'DIFFERENT'}; the first:")
        variables, truth, answer = found[0]
        print("  ", json.dumps(variables["messages"], ensure_ascii=False)[:300])
        print("   transformers:", json.dumps(truth, ensure_ascii=False)[:1500])
        print("   Ferry:       ", json.dumps(answer, ensure_ascii=False)[:1500])
    n = len(cases)
    print(f"{len(files)} templates, {n} chats: {n_equal} equal, {n_both} refused by both, {n_refused} refused by Ferry alone, {n_wrong} different; "
          f"{(n_equal + n_both) / n:.2%}, {len(files) - len({name for name, _ in shown})} templates without a difference")
    sys.exit(n_wrong > 0 or (n_equal + n_both) / n < least)


main()
