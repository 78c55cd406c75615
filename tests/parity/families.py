"""Each family of models beside transformers, on a small random model of its own: logits, loss and every gradient in fp32, ten
optimizer steps, and that transformers loads what was saved. Bars and rules are those of compare.py and compare_steps.py.

    families.py PARITY_DUMP_PROGRAM TRAIN_DUMP_PROGRAM [NAME]

By itself the first head of each row of the table, and all heads of one encoder and one decoder; FERRY_LONG=1 or a name takes all
of them. Prints two lines a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is
missing."""
import os, sys

try:
    import torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import compare, compare_steps, small
from small import keys_of

LOSSES = dict(ForSequenceClassification=("cross_entropy", 3), ForMaskedLM=("masked_lm", 1), ForTokenClassification=("token_classification", 5),
              ForQuestionAnswering=("question_answering", 1), ForCausalLM=("causal_lm", 1), LMHeadModel=("causal_lm", 1))


LLAMA, GEMMA3 = keys_of("llama"), keys_of("gemma3_text")
# Settings beside those of the table: class of transformers, its configuration, keys.
VARIANTS = [
    ("ElectraForSequenceClassification", "ElectraConfig", keys_of("electra", hidden_act="gelu_new", embedding_size=48)),
    ("OPTForCausalLM", "OPTConfig", keys_of("opt", word_embed_proj_dim=64)),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", keys_of("gpt_neox", use_parallel_residual=False, attention_bias=False)),
    ("LlamaForCausalLM", "LlamaConfig", LLAMA | dict(head_dim=24, tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
                                                     rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                                       original_max_position_embeddings=64))),
    ("LlamaForCausalLM", "LlamaConfig", LLAMA | dict(rope_scaling=dict(rope_type="linear", factor=4.0))),
    ("LlamaForCausalLM", "LlamaConfig", LLAMA | dict(rope_scaling=dict(rope_type="dynamic", factor=4.0))),
    ("LlamaForCausalLM", "LlamaConfig", LLAMA | dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=40))),
    ("Qwen2ForCausalLM", "Qwen2Config", keys_of("qwen2", use_sliding_window=True, sliding_window=9, max_window_layers=1)),
    ("StableLmForCausalLM", "StableLmConfig", keys_of("stablelm", use_parallel_residual=False, use_qkv_bias=False, tie_word_embeddings=True)),
    ("Phi3ForCausalLM", "Phi3Config", keys_of("phi3", sliding_window=50)),
    ("Phi3ForCausalLM", "Phi3Config", keys_of("phi3", original_max_position_embeddings=80, rope_scaling=dict(
        rope_type="longrope", short_factor=[1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.1, 3.8], long_factor=[1.0] * 8))),
]
NAMES = [name for name in small.TABLE if name != "bert"]  # compare.py has BERT
CASES = [*(case for name in NAMES for case in small.cases_of(name)), *VARIANTS]
QUICK = [small.cases_of(name)[0] for name in NAMES] + small.cases_of("roberta") + small.cases_of("llama")
TEXT_PART = "Gemma3ForConditionalGeneration"
TYPED = ("Electra",)  # families that read types of tokens
POSITIONS = [[3, 7], [0, 110], [8, 2], [63, 63], [0, 0]]


def zero_elements(model, loss, n_labels, least_id):
    """By name the elements whose gradient is exactly zero by fp64 and not in fp32."""
    step = compare_steps.make_steps(model.config.vocab_size, loss, n_labels, 64, least_id)[0]
    grads = []
    for one in (model, compare.in_fp64(model)):
        one.zero_grad()
        compare_steps.step_loss(one, step, loss)
        grads.append({name: p.grad.double() for name, p in compare.parameters(one).items() if p.grad is not None})
        one.zero_grad()
    scale = torch.stack([g.abs().max() for g in grads[1].values()]).median()
    zeros = {name: (exact.abs() < 1e-11 * scale) & ((grads[0][name] != 0) | (exact.dim() == 1)) for name, exact in grads[1].items()}
    return {name: mask for name, mask in zeros.items() if mask.any()}


def model_of(class_name, config_name, keys, n_labels):
    """The random model, and the least id that is no padding."""
    labels = dict(num_labels=n_labels) if n_labels > 1 else {}
    config = getattr(transformers, config_name)(**keys, **labels)
    config._attn_implementation = "eager"
    model = getattr(transformers, class_name)(config)
    compare.randomise(model, 5)
    return model.eval().float(), (config.pad_token_id or 0) + 1


def run_case(programs, class_name, config_name, keys):
    loss, n_labels = next(value for suffix, value in LOSSES.items() if class_name.endswith(suffix))
    model, least_id = model_of(class_name, config_name, keys, n_labels)
    case = dict(built=model, loss=loss, lengths=[40, 111, 9, 64, 1] if loss != "causal_lm" else [40, 111, 9, 64, 2], n_dummy=1,
                takes_types=class_name.startswith(TYPED), least_id=least_id, positions=POSITIONS[:4])
    if n_labels > 1:
        case["n_labels"] = n_labels
    if loss == "question_answering":
        case["positions"] = POSITIONS[:4]
    first = compare.run_case(programs[0], class_name, case)
    zeros = zero_elements(model, loss, n_labels, least_id)
    second = compare_steps.run_case(programs[1], f"{class_name}, ten steps", model, loss, n_labels, 64, {}, least_id, zeros)
    return [first, second]


def run_text_part(program):
    """The texts' part of a model of texts and images, from its files, beside the same weights in a model of texts."""
    config = transformers.Gemma3Config(
        text_config=GEMMA3, mm_tokens_per_image=4, vision_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                                                      intermediate_size=40, image_size=28, patch_size=14))
    whole = transformers.Gemma3ForConditionalGeneration(config)
    compare.randomise(whole, 5)
    config.text_config._attn_implementation = "eager"
    text = transformers.Gemma3ForCausalLM(config.text_config)
    text.model.load_state_dict(whole.model.language_model.state_dict())
    case = dict(built=text.eval().float(), saved=whole, loss="causal_lm", lengths=[40, 111, 9, 64, 2], n_dummy=1, takes_types=False)
    return compare.run_case(program, TEXT_PART, case)


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    takes_all = len(sys.argv) > 3 or os.environ.get("FERRY_LONG") == "1"
    for case in CASES:
        if takes_all and (len(sys.argv) < 4 or sys.argv[3] in case[0]) or not takes_all and case in QUICK:
            results += run_case(sys.argv[1:3], *case)
    if takes_all and (len(sys.argv) < 4 or sys.argv[3] in TEXT_PART):
        results.append(run_text_part(sys.argv[1]))
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
