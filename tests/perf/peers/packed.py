"""BERT on rows laid end to end, without padding: what transformers needs for it, and no further package.

LibTorch's own flash attention takes rows of different lengths by their first places. A step's tokens are filled
up to a multiple, as rows of their own that no label is of, so that sizes repeat and a CUDA graph of each fits.
"""
import torch

NAME = "rows_end_to_end"
FILLER_MOST = 512  # tokens of a filler row: BERT has no more positions


def batch(lengths, round_to, generator):
    """Keyword arguments of the model for rows of these lengths, filled up to a multiple of round_to tokens.
    The number of rows does not depend on how much is filled."""
    n_tokens = sum(lengths)
    round_to = round_to or 1
    missing = -n_tokens % round_to
    n_fillers = -(-(round_to - 1) // FILLER_MOST)
    fillers = [min(FILLER_MOST, max(0, missing - i * FILLER_MOST)) for i in range(n_fillers)]
    rows = torch.tensor([*lengths, *fillers])
    starts = torch.nn.functional.pad(rows.cumsum(0), (1, 0)).int()
    return {
        "input_ids": torch.randint(5, 30000, (1, n_tokens + missing), generator=generator),
        "position_ids": torch.cat([torch.arange(int(n)) for n in rows])[None],
        "labels": torch.randint(0, 2, (len(lengths),), generator=generator),
        "cu_seq_lens_q": starts, "cu_seq_lens_k": starts,
        # One number for all steps: a graph holds it, and so does what was compiled.
        "max_length_q": FILLER_MOST, "max_length_k": FILLER_MOST}


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, cu_seq_lens_q=None,
              max_length_q=None, **_):
    """Attention of each row to itself, as transformers calls it: (1, heads, tokens, width) each."""
    assert attention_mask is None
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    dropout = dropout if module.training else 0.0
    if q.is_cuda:
        out = torch.ops.aten._flash_attention_forward(
            q, k, v, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q, dropout, False, False,
            scale=scaling)[0]
    else:  # to try the rest without a GPU
        rows = [torch.nn.functional.scaled_dot_product_attention(
                    *(tensor[first:last].transpose(0, 1)[None] for tensor in (q, k, v)), dropout_p=dropout,
                    scale=scaling)[0].transpose(0, 1)
                for first, last in zip(cu_seq_lens_q.tolist(), cu_seq_lens_q.tolist()[1:]) if last > first]
        out = torch.cat(rows)
    return out[None], None


def register():
    """transformers makes no mask for a name that it knows no mask of."""
    from transformers import AttentionInterface
    AttentionInterface.register(NAME, attention)


class FirstTokens(torch.nn.Module):
    """BERT's pooler takes the first token of each padded row; here that of each row laid end to end."""

    def __init__(self, pooler):
        super().__init__()
        self.pooler, self.starts = pooler, None

    def forward(self, hidden):
        return self.pooler(hidden[0].index_select(0, self.starts)[:, None])


def pool_first_tokens(model):
    pooler = model.bert.pooler = FirstTokens(model.bert.pooler)

    def note(_, args, words):
        # Fillers have no label.
        pooler.starts = words["cu_seq_lens_q"][:len(words["labels"])]
    model.register_forward_pre_hook(note, with_kwargs=True)
