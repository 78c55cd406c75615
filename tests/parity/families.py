"""Each family of models beside transformers, on a small random model of its own: logits, loss and every gradient in fp32, ten
optimizer steps, and that transformers loads what was saved. Bars and rules are those of compare.py and compare_steps.py.

    families.py PARITY_DUMP_PROGRAM TRAIN_DUMP_PROGRAM [NAME]

Prints two lines a case and a last line "N passed, N failed"; exits 1 when one failed, 77 when a package is missing."""
import copy, sys

try:
    import torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import compare, compare_steps

ENCODER = dict(vocab_size=500, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=80)
LOSSES = dict(ForSequenceClassification=("cross_entropy", 3), ForMaskedLM=("masked_lm", 1), ForTokenClassification=("token_classification", 5),
              ForQuestionAnswering=("question_answering", 1), ForCausalLM=("causal_lm", 1), LMHeadModel=("causal_lm", 1))


def encoders(stem, **keys):
    return [(f"{stem}{head}", f"{stem}Config", keys) for head in
            ("ForSequenceClassification", "ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering")]


CASES = [  # class of transformers, its configuration, settings
    *encoders("Roberta", **ENCODER, max_position_embeddings=164, type_vocab_size=1, pad_token_id=1),
    *encoders("XLMRoberta", **ENCODER, max_position_embeddings=164, type_vocab_size=1, pad_token_id=1)[1:2],
    *encoders("Camembert", **ENCODER, max_position_embeddings=164, type_vocab_size=1, pad_token_id=1)[:1],
    *encoders("DistilBert", vocab_size=500, dim=48, n_layers=2, n_heads=3, hidden_dim=80, max_position_embeddings=160),
    *encoders("Electra", **ENCODER, embedding_size=32, max_position_embeddings=160),
    *encoders("Electra", **(ENCODER | dict(hidden_act="gelu_new")), embedding_size=48, max_position_embeddings=160)[:1],
]
TYPED = ("Electra",)  # families that read types of tokens
POSITIONS = [[3, 7], [0, 110], [8, 2], [63, 63], [0, 0]]


def zero_elements(model, loss, n_labels, least_id):
    """By name the elements whose gradient is exactly zero by fp64 and not in fp32."""
    step = compare_steps.make_steps(model.config.vocab_size, loss, n_labels, 64, least_id)[0]
    grads = []
    for one in (model, copy.deepcopy(model).double()):
        one.zero_grad()
        compare_steps.step_loss(one, step, loss)
        grads.append({name: p.grad.double() for name, p in compare.parameters(one).items() if p.grad is not None})
        one.zero_grad()
    scale = torch.stack([g.abs().max() for g in grads[1].values()]).median()
    zeros = {name: (exact.abs() < 1e-11 * scale) & (grads[0][name] != 0) for name, exact in grads[1].items()}
    return {name: mask for name, mask in zeros.items() if mask.any()}


def run_case(programs, class_name, config_name, keys):
    loss, n_labels = next(value for suffix, value in LOSSES.items() if class_name.endswith(suffix))
    labels = dict(num_labels=n_labels) if n_labels > 1 else {}
    config = getattr(transformers, config_name)(**keys, **labels)
    config._attn_implementation = "eager"
    model = getattr(transformers, class_name)(config)
    compare.randomise(model, 5)
    model = model.eval().float()
    least_id = (config.pad_token_id or 0) + 1
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


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    for class_name, config_name, keys in CASES:
        if len(sys.argv) < 4 or sys.argv[3] in class_name:
            results += run_case(sys.argv[1:3], class_name, config_name, keys)
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
