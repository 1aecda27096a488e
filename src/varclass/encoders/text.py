"""A small Transformer for short texts and pairs of texts, trained from scratch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass.core.options import check_count
from varclass.encoders.contract import ENCODERS, Encoder, check_dropout
from varclass.encoders.tokenizer import PADDING, SEPARATOR, VOCABULARY


class AttentionBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)): a pre-norm Transformer layer, with dropout on both branches."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: Tensor, attend: Tensor) -> Tensor:
        """(B, L, width), (B, 1, 1, L) -> (B, L, width)."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attend)
        x = x + self.dropout1(self.out(mixed.transpose(1, 2).flatten(2)))
        return x + self.dropout2(self.down(F.gelu(self.up(self.norm2(x)))))


@ENCODERS.register("text")
class TextEncoder(Encoder):
    """Transformer for short texts: token, position and segment embeddings, pre-norm layers, masked mean and max.

    F = 2 * width. Token ids come from `HashTokenizer`: 0 is padding, at the end; 1 separates the two texts of a pair.
    Padding has no influence on the features. Dropout acts on the embeddings and on both branches of each layer.

    Args:
        length: most tokens in a text.
        vocabulary: number of token ids; the tokenizer's.
        width: of the embeddings.
        layers: Transformer layers.
        heads: attention heads; they divide the width.
        dropout: probability.

    >>> encoder = TextEncoder(length=16, vocabulary=100)
    >>> encoder(torch.tensor([[5, 7, 1, 9, 0, 0], [0, 0, 0, 0, 0, 0]])).shape
    torch.Size([2, 256])
    """

    pattern, kinds = "text", ("text",)

    def __init__(
        self,
        length: int = 64,
        vocabulary: int = VOCABULARY,
        width: int = 128,
        layers: int = 2,
        heads: int = 4,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.length = check_count("length", length, 1)
        check_count("vocabulary", vocabulary, 3)
        if check_count("width", width, 1) % check_count("heads", heads, 1):
            raise ValueError(f"width must be a multiple of heads; got width {width}, heads {heads}")
        check_dropout(dropout)
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.segment = nn.Embedding(2, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(AttentionBlock(width, heads, dropout) for _ in range(check_count("layers", layers, 1)))
        self.norm_mean, self.norm_max = nn.LayerNorm(width), nn.LayerNorm(width)
        self.out_features = 2 * width
        # A rare word is seen a few times, and Adam moves a weight by no more than the learning rate each time. The factor
        # makes its vector move as far as the vector needs, at a learning rate that suits the layers.
        self.scale = 2 * width**0.5
        for module in self.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.token.weight, std=0.1 / self.scale)

    def forward(self, x: Tensor) -> Tensor:
        """Token ids int64 (B, L) with L up to `length` -> (B, F)."""
        if x.dim() != 2 or x.shape[1] > self.length:
            raise ValueError(f"token ids must be (B, L) with L up to {self.length}; got shape {tuple(x.shape)}")
        place = torch.arange(x.shape[1], device=x.device)
        # The first place always counts: an empty text is then one padding token, and no softmax or maximum is over nothing.
        keep = (x != PADDING) | (place == 0)
        second = ((x == SEPARATOR).cumsum(1) > 0).long()
        h = self.dropout(self.scale * self.token(x) + self.position(place) + self.segment(second))
        for block in self.blocks:
            h = block(h, keep[:, None, None, :])
        keep = keep.unsqueeze(-1)
        # Norms come after the pooling: normalized first, every word would weigh the same.
        mean = self.norm_mean(h.masked_fill(~keep, 0).sum(1) / keep.sum(1))
        largest = self.norm_max(h.masked_fill(~keep, torch.finfo(h.dtype).min).amax(1))
        return torch.cat([mean, largest], dim=-1)

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """The number of tokens in a text."""
        return {"length": shape[0]}
