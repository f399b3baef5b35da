"""A small transformer that predicts the next byte."""

from __future__ import annotations

import hashlib
import math

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from data import VOCABULARY


class Block(nn.Module):
    """Causal attention, then a feed-forward layer for each token."""

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(width, eps=1e-5)
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width, bias=False)
        self.hidden_norm = nn.RMSNorm(width, eps=1e-5)
        self.hidden_in = nn.Linear(width, 4 * width, bias=False)
        self.hidden_out = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.queries_keys_values(self.attention_norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(attended.transpose(1, 2).reshape(batch, length, width))
        added: Tensor = x + self.hidden_out(F.gelu(self.hidden_in(self.hidden_norm(x))))
        return added


class Transformer(nn.Module):
    """Takes bytes (batch, length) and returns scores of the next byte (batch, length, 256).

    It uses no random numbers during training (no dropout), so a checkpoint needs no generator state.
    """

    def __init__(self, *, layers: int, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width=width, heads=heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.scores = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.scores(self.norm(x))
        return scores


def initialize(model: Transformer, *, seed: int) -> None:
    """Initialize the weights, sharded or not, identically on any number of workers.

    Each weight is drawn from the seed and its name, and a worker keeps its part: no worker ever has more than one
    complete weight, and nothing is sent.
    """
    deviation = 0.02
    into_the_sum = deviation / math.sqrt(2 * len(model.blocks))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.fill_(1.0)
                continue
            digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))
            spread = into_the_sum if name.endswith("_out.weight") else deviation
            drawn = torch.empty(weight.shape).normal_(0.0, spread, generator=generator)
            if isinstance(weight, DTensor):
                # src_data_rank=None: every worker has drawn it, so nothing must be sent
                part = distribute_tensor(
                    drawn.to(weight.device), weight.device_mesh, weight.placements, src_data_rank=None
                )
                weight.to_local().copy_(part.to_local())
            else:
                weight.copy_(drawn)
