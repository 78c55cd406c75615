"""What Ferry may not do at a work, by the two objects that step_bench prints."""
from works import bytes_of

HOST_SHARE = 1.05  # of what was promised
# Of a parameter's bytes: tensors begin on multiples of 256 elements, and 8-bit states have an exponent
# for each as many.
STATES_SHARE = 1.005

STATE_BYTES = {"adamw": 8, "adamw_bf16": 4, "adamw_8bit": 2}
STATE_TAGS = {"weights", "grads", "master", "adam_m", "adam_v"}


def bytes_of_parameters(result):
    """What parameters take in host memory: weights, master and states, and their gradients, which wait
    for the norm of all, or are the sum over several micro-batches, or over the uses of a tied tensor,
    each of which has one. A block has a place for each of the three: states of a block on the GPU may
    have their weights and gradients in host memory."""
    wide = result["dtype"] == "fp32"
    waits = float(result["clip"]) > 0 or result["dtype"] == "fp16"
    weights = 4 if wide else 2
    master = 0 if wide else 2 if result["master"] == "split" else 4
    n_bytes = 0
    for block in result["blocks"]:
        sums = wide or result["n_micro"] > 1 or "borrowed" in block
        if block["weights"] == "host":
            n_bytes += weights * block["trained"]
        if block["place"] == "host":
            n_bytes += (master + STATE_BYTES[result["optim"]]) * block["trained"]
        if block["grads"] == "host":
            n_bytes += (4 if sums else 2 if waits else 0) * (block["trained"] + block.get("borrowed", 0))
    return n_bytes


def faults_of(work, result):
    """What Ferry did that it may not do, or what it should have done and did not."""
    if "samples_per_s" not in result:
        return ["did not come to its end"]
    faults = []

    def hold(what, took, may):
        if may is not None and took > may:
            faults.append(f"took {took / 2**30:.2f} GiB of {what}, {may / 2**30:.2f} are allowed")
    hold("GPU memory", result["gpu_bytes_max"], bytes_of(result["cap"]))
    hold("host memory", result["host_bytes_max"], HOST_SHARE * result["promised"]["host_bytes"])
    of_states = sum(region["bytes"] for region in result["promised"]["regions"]
                    if region["place"] == "host" and region["tag"] in STATE_TAGS)
    hold("host memory for parameters", of_states, STATES_SHARE * bytes_of_parameters(result))
    hold("the host memory it was given", result["host_bytes_max"], bytes_of(result["host-memory"]))
    if result["swapped_bytes"]:
        faults.append(f"{result['swapped_bytes'] / 2**20:.0f} MiB of it were swapped out")
    if result["skipped_steps"]:
        faults.append(f"{result['skipped_steps']} steps skipped")
    if work.get("learns") and not result["loss"] < result["first_loss"]:
        faults.append(f"its loss went from {result['first_loss']:.3f} to {result['loss']:.3f}")
    return faults
