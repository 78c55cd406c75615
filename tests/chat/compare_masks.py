"""Compares the answers that Ferry trains with what is known of them.

    compare_masks.py RENDER_CHATS TEMPLATES [TRL_TEMPLATES]

TEMPLATES holds the *.jinja of models. Each chat has to show its answers with the token that ends them and nothing that others say, or be refused by name;
of ten templates the trained texts are written down here. TRL_TEMPLATES holds the *_training.jinja of TRL, whose marks as transformers counts them are
the truth there; without it an installed TRL's are taken, where there is one. Exits with 77 (skipped) where something is missing."""
import importlib.util, json, pathlib, re, subprocess, sys

try:
    import jinja2
    from transformers.utils import chat_template_utils
except ImportError as e:
    print(f"skipped: {e}; scripts/setup --tests installs it")
    sys.exit(77)
from chats import CALL, ONE, TOOLS, TWO, answer, conversations, system, thinking, user

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
# The trained texts of TWO, by hand: the answers are "Hello!" and "Fine.".
TRUTH = {
    "Qwen-Qwen2.5-7B-Instruct.jinja": ["Hello!<|im_end|>", "Fine.<|im_end|>"],
    "Qwen-Qwen3-0.6B.jinja": ["Hello!<|im_end|>", "<think>\n\n</think>\n\nFine.<|im_end|>"],
    "meta-llama-Llama-3.1-8B-Instruct.jinja": ["Hello!<|eot_id|>", "Fine.<|eot_id|>"],
    "meta-llama-Llama-3.3-70B-Instruct.jinja": ["Hello!<|eot_id|>", "Fine.<|eot_id|>"],
    "google-gemma-2-2b-it.jinja": ["Hello!<end_of_turn>", "Fine.<end_of_turn>"],
    "microsoft-Phi-3.5-mini-instruct.jinja": ["Hello!<|end|>", "Fine.<|end|>"],
    "mistralai-Mistral-Nemo-Instruct-2407.jinja": ["Hello!</s>", "Fine.</s>"],
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja": ["Hello!<｜end▁of▁sentence｜>", "Fine.<｜end▁of▁sentence｜>"],
    "LFM2-8B-A1B.jinja": ["Hello!<|im_end|>", "Fine.<|im_end|>"],
    "openai-gpt-oss-120b.jinja": ["<|channel|>final<|message|>Hello!<|end|>", "<|channel|>final<|message|>Fine.<|return|>"],
    "GLM-4.6.jinja": ["<think></think>\nHello!<|user|>", "<think></think>\nFine."],
    "ibm-granite-granite-3.3-2B-Instruct.jinja": ["Hello!<|end_of_text|>", "Fine.<|end_of_text|>"],
}


def controls_of(text):
    """Texts in a template that look like control tokens."""
    found = set(re.findall(r"<[|｜][^<>{}'\"\s]+[|｜]>|<[a-z]+_of_[a-z]+>|\[/?[A-Z_]{3,}\]|<(?:seed|turn|channel)[:|][a-z]+>|<[a-z]+\|>|<\|[a-z]+>", text))
    return sorted(found | set(TOKENS.values()))


def in_characters(answer):
    if "generated" in answer:
        data = answer["text"].encode()
        answer["generated"] = [[len(data[:at].decode()) for at in span] for span in answer["generated"]]
    return answer


def run(program, cases):
    done = subprocess.run([program], input="".join(json.dumps(case) + "\n" for case in cases), text=True, stdout=subprocess.PIPE)
    if done.returncode == 77:
        print("skipped: this build has no engine for chat templates; scripts/setup installs it")
        sys.exit(77)
    answers = [in_characters(json.loads(line)) for line in done.stdout.split("\n") if line]
    assert len(answers) == len(cases), (len(answers), len(cases), done.returncode)
    return answers


def case_of(template, messages, tools, ends):
    return {"template": template, "row": {"messages": messages, "tools": tools}, "tokens": TOKENS, "controls": controls_of(template), "ends": ends}


def trained(answer):
    return [answer["text"][begin:end] for begin, end in answer["generated"]]


def check_models(program, directory):
    """Faults of the masks of models' own templates."""
    chats_of_words = [
        ONE, TWO, [system("Be brief.")] + TWO, TWO + [user("A third question?"), answer("A third answer.")], TWO + [user("Left open?")],
        [user("Why so?"), thinking("Because of it.", "Let me think."), user("And then?"), thinking("Nothing more.", "Well well.")],
        [user("Why so?"), answer("<think>\nhidden words\n</think>\n\nshown words"), user("And then?"), answer("The rest of it.")],
        CALL, CALL + [user("Thanks a lot"), answer("You are welcome.")],
    ]
    faults, n_refused, n_right, refused = [], 0, 0, {}
    files = sorted(pathlib.Path(directory).glob("*.jinja"))
    cases = [(file, messages, case_of(file.read_text(), messages, TOOLS if any("tool_calls" in m for m in messages) else None, []))
             for file in files for messages in chats_of_words]
    for (file, messages, case), result in zip(cases, run(program, [case for _, _, case in cases])):
        if "raised" in result:
            n_refused += 1
            # The template's own refusal is no matter of masks.
            if "[chat.mask]" in result["raised"]:
                refused.setdefault(file.name, []).append(result["raised"])
            elif "[chat.template]" not in result["raised"]:
                faults.append(f"{file.name}: a fault without a name: {result['raised']}")
            continue
        texts = trained(result)
        answers = [m for m in messages if m["role"] == "assistant"]
        others = [m["content"] for m in messages if m["role"] != "assistant"]
        what = f"{file.name}: {json.dumps(messages)[:150]}: {texts}"
        if len(texts) != len(answers):
            faults.append(f"{what}: {len(answers)} answers")
            continue
        for text, said in zip(texts, answers):
            words = said.get("content", "").split("</think>")[-1].strip()
            if words not in text:
                faults.append(f"{what}: an answer is not in it")
            if said.get("tool_calls") and said["tool_calls"][0]["function"]["name"] not in text:
                faults.append(f"{what}: a call is not in it")
        for text in others:
            if any(text in part for part in texts):
                faults.append(f"{what}: another's words are in it")
        n_right += 1
    for name, wanted in TRUTH.items():
        result = run(program, [case_of((pathlib.Path(directory) / name).read_text(), TWO, None, [])])[0]
        found = [part.strip() for part in trained(result)] if "generated" in result else result
        if found != wanted:
            faults.append(f"{name}: {found}, by hand {wanted}")
    for name, why in refused.items():
        print(f"{name}: {len(why)} refused: {why[0][:200]}")
    print(f"{len(files)} templates of models, {len(cases)} chats: {n_right} right, {n_refused} refused by name "
          f"({sum(map(len, refused.values()))} for their masks); {len(TRUTH)} by hand")
    return faults


def truth_of(template, case):
    compiled = chat_template_utils._compile_jinja_template(template)
    messages = json.loads(json.dumps(case["row"]["messages"]))
    for message in messages:  # Ferry makes objects of them first
        for call in message.get("tool_calls", []):
            if isinstance(call["function"]["arguments"], str):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    text, marked = chat_template_utils._render_with_assistant_indices(
        compiled_template=compiled, messages=messages, tools=case["row"]["tools"], documents=None, add_generation_prompt=False, **TOKENS)
    return {"text": text, "generated": [list(span) for span in marked if span[0] < span[1]]}


def check_trl(program, directory):
    files = sorted(directory.glob("*_training.jinja"))
    cases, truths = [], []
    for file in files:
        template = file.read_text()
        for messages, tools, prompt, more in conversations():
            case = case_of(template, messages, tools, [])
            case["controls"] = []  # the chats have none, and marks need none
            try:
                truth = truth_of(template, case)
            except Exception:
                continue  # the template refuses the chat
            if truth["generated"] and not more:
                cases.append((file.name, case))
                truths.append(truth)
    faults, n_equal, n_refused = [], 0, {}
    for (name, case), truth, result in zip(cases, truths, run(program, [case for _, case in cases])):
        if "raised" in result:
            why = result["raised"].split(" - ")[0].split(": ")[-1]
            n_refused[why] = n_refused.get(why, 0) + 1
        elif result != truth:
            faults.append(f"{name}: {json.dumps(case['row']['messages'], ensure_ascii=False)[:200]}\n  TRL   {truth}\n  Ferry {result}")
        else:
            n_equal += 1
    print(f"{len(files)} training templates of TRL, {len(cases)} chats: {n_equal} equal, {len(faults)} different, refused as data {n_refused}")
    return faults


def main():
    program, directory = sys.argv[1:3]
    if not list(pathlib.Path(directory).glob("*.jinja")):
        print(f"skipped: {directory} holds no templates; scripts/setup brings them")
        sys.exit(77)
    faults = check_models(program, directory)
    trl = importlib.util.find_spec("trl")
    given = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else trl and pathlib.Path(trl.origin).parent / "chat_templates"
    if given and given.is_dir():
        faults += check_trl(program, given)
    else:
        print("TRL is not here: its training templates were not compared; give their directory")
    for fault in faults[:20]:
        print(fault)
    print(f"{len(faults)} faults")
    sys.exit(len(faults) > 0)


main()
