"""The reader: an encoder of messages, and what it says of each token. Needs torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

LAYERS, HEADS, SIZE, WIDE, WORDS, PLACES = 6, 12, 384, 1536, 30522, 512
FLOATS = {"F16": np.float16, "F32": np.float32}  # as safetensors names them
SHARED = 3  # layers that the reading of pairs shares with that of messages


def read_weights(file: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file as float32."""
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, place in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and place["dtype"] in FLOATS:
            start, stop = (8 + size + offset for offset in place["data_offsets"])
            values = np.frombuffer(data[start:stop], FLOATS[place["dtype"]]).reshape(place["shape"])
            tensors[name] = torch.from_numpy(values.astype(np.float32))
    return tensors


class Attention(nn.Module):
    """A layer's attention, with the names of BERT's weights."""

    def __init__(self) -> None:
        super().__init__()
        self.self = nn.ModuleDict({name: nn.Linear(SIZE, SIZE) for name in ("query", "key", "value")})
        self.output = nn.ModuleDict({"dense": nn.Linear(SIZE, SIZE), "LayerNorm": nn.LayerNorm(SIZE, eps=1e-12)})

    def forward(self, x: Tensor, mask: Tensor, dropout: float) -> Tensor:
        """Return the tokens after attention."""
        texts, tokens, _ = x.shape
        query, key, value = (
            self.self[name](x).view(texts, tokens, HEADS, SIZE // HEADS).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        seen = self.output["dense"](seen.transpose(1, 2).reshape(texts, tokens, SIZE))
        return self.output["LayerNorm"](x + functional.dropout(seen, dropout))


class Layer(nn.Module):
    """A layer of BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(SIZE, WIDE)})
        self.output = nn.ModuleDict({"dense": nn.Linear(WIDE, SIZE), "LayerNorm": nn.LayerNorm(SIZE, eps=1e-12)})

    def forward(self, x: Tensor, mask: Tensor, dropout: float) -> Tensor:
        """Return the tokens after the layer."""
        x = self.attention(x, mask, dropout)
        narrow = self.output["dense"](functional.gelu(self.intermediate["dense"](x)))
        return self.output["LayerNorm"](x + functional.dropout(narrow, dropout))


class Encoder(nn.Module):
    """The encoder, whose word embeddings stay as they are, and a linear head for each label of tokens."""

    def __init__(self, labels: dict[str, int], weights: Path) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(WORDS, SIZE),
                "position_embeddings": nn.Embedding(PLACES, SIZE),
                "token_type_embeddings": nn.Embedding(2, SIZE),
                "LayerNorm": nn.LayerNorm(SIZE, eps=1e-12),
            }
        )
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer() for _ in range(LAYERS))})
        self.labels = labels
        self.heads = nn.Linear(SIZE, sum(labels.values()))
        own = self.state_dict()
        self.load_state_dict({name: each for name, each in read_weights(weights).items() if name in own}, strict=False)
        self.embeddings["word_embeddings"].weight.requires_grad = False

    def freeze_shared(self) -> None:
        """Let what the readings of messages and of pairs share stay as it is."""
        for part in (self.embeddings, *self.encoder["layer"][:SHARED]):
            part.requires_grad_(False)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return the logits of each label."""
        dropout = 0.1 if self.training else 0.0
        places = torch.arange(ids.shape[1])
        x = self.embeddings["word_embeddings"](ids) + self.embeddings["position_embeddings"](places)
        x = self.embeddings["LayerNorm"](x + self.embeddings["token_type_embeddings"](segments))
        seen = mask[:, None, None, :].bool()
        x = functional.dropout(x, dropout)
        for layer in self.encoder["layer"]:
            x = layer(x, seen, dropout)
        x = functional.dropout(x, dropout)
        return dict(zip(self.labels, self.heads(x).split([*self.labels.values()], dim=-1), strict=True))
