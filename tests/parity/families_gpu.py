"""Each family of models in 16 bits on a GPU beside transformers: losses and gradient norms of ten batches at a rate of zero.
Both are compared with transformers in fp32; Ferry may be twice as far from it as transformers is in the same type (autocast),
or as far as a floor that some roundings take.

    families_gpu.py TRAIN_DUMP_PROGRAM [bf16|fp16 [NAME]]

Prints a line a case and a last line "N passed, N failed"; exits 1 when one failed, 77 without a GPU or a package."""
import json, pathlib, subprocess, sys, tempfile

try:
    import torch, transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

import compare, compare_steps, families

FLOORS = dict(bf16=(2e-3, 1e-2), fp16=(3e-4, 2e-3))  # of losses and of gradient norms
N_SKIPPED_MAX = 4  # steps in which fp16's loss scale comes down


def theirs(model, steps, loss, dtype):
    """(loss, gradient norm) of each step."""
    found = []
    for step in steps:
        model.zero_grad()
        with torch.autocast("cuda", dtype, enabled=dtype is not None), torch.device("cuda"):
            value = compare_steps.step_loss(model, step, loss)
        grads = [p.grad.float() for p in model.parameters() if p.grad is not None]
        found.append((value, torch.stack([g.norm() for g in grads]).norm().item()))
    return found


def apart(some, others):
    """The root mean square of relative differences: of losses, of norms."""
    differences = torch.tensor([[abs(a - b) / abs(b) for a, b in zip(one, other)] for one, other in zip(some, others, strict=True)])
    return differences.square().mean(0).sqrt().tolist()


def run_case(program, type_name, class_name, config_name, keys):
    loss, n_labels = next(value for suffix, value in families.LOSSES.items() if class_name.endswith(suffix))
    model, least_id = families.model_of(class_name, config_name, keys, n_labels)
    steps = compare_steps.make_steps(model.config.vocab_size, loss, n_labels, 64, least_id)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        model.save_pretrained(directory / "model")
        (directory / "steps.json").write_text(json.dumps(dict(
            loss=loss, n_labels=n_labels, max_length=64, steps=steps, learning_rate=0.0, n_warmup_steps=0, weight_decay=0.0, max_grad_norm=1.0)))
        subprocess.run([program, str(directory), "cuda", type_name], check=True)
        ours = [(step["loss"], step["grad_norm"]) for step in json.loads((directory / "losses.json").read_text())["steps"]]
    model = model.cuda()
    exact = theirs(model, steps, loss, None)
    own = apart(theirs(model, steps, loss, {"bf16": torch.bfloat16, "fp16": torch.float16}[type_name]), exact)
    # A step whose scaled gradients overflow has no norm: it is skipped, and the loss scale of the next one is half as large.
    kept = [i for i, (_, norm) in enumerate(ours) if norm is not None]
    if len(ours) - len(kept) > N_SKIPPED_MAX:
        raise RuntimeError(f"{len(ours) - len(kept)} of {len(ours)} steps have no gradient norm")
    mine = apart([ours[i] for i in kept], [exact[i] for i in kept])
    good = all(m <= max(2 * o, floor) for m, o, floor in zip(mine, own, FLOORS[type_name]))
    print(f"{'PASS' if good else 'FAIL'} {class_name} {type_name}: loss {mine[0]:.1e} (transformers {own[0]:.1e}), norm {mine[1]:.1e} "
          f"({own[1]:.1e})", flush=True)
    return good


def main():
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        sys.exit(77)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    type_name = sys.argv[2] if len(sys.argv) > 2 else "bf16"
    results = []
    for class_name, config_name, keys in families.CASES:
        if len(sys.argv) < 4 or sys.argv[3] in class_name:
            try:
                results.append(run_case(sys.argv[1], type_name, class_name, config_name, keys))
            except Exception as fault:
                print(f"FAIL {class_name} {type_name}: {fault}", flush=True)
                results.append(False)
    passed, failed = results.count(True), results.count(False)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
