#!/usr/bin/env python3
"""Write `memstore/providers/minilm.onnx`: all-MiniLM-L6-v2 as a graph whose weights stay in their file.

tools/minilm_graph.py            write the graph (needs `pip install onnx`)
tools/minilm_graph.py --check    exit 1 where the file is not what this makes

Six layers of BERT, the mean over tokens, unit length. Every weight is an external tensor: a place in
`model.safetensors`, which ONNX Runtime maps into memory. Gemm reads the weights of linear layers as they are stored;
word embeddings are stored in half precision (`fetch_model.py`), and those of the tokens at hand become floats.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PROVIDERS = Path(__file__).parents[1] / "memstore" / "providers"
GRAPH = PROVIDERS / "minilm.onnx"
WEIGHTS = PROVIDERS / "all-MiniLM-L6-v2" / "model.safetensors"
LAYERS, HEADS, SIZE, DIMENSIONS = 6, 12, 32, 384
EPSILON = 1e-12
OPSET, IR_VERSION = 20, 9  # the first with Gelu and LayerNormalization
MASKED = -10_000.0
TYPES = {"F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT}  # as safetensors names them


class Graph:
    """Nodes, constants and the weights that they name."""

    def __init__(self, weights: Path) -> None:
        with weights.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            self._places = json.loads(file.read(size))
        self._file, self._begin = weights.name, 8 + size
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: dict[str, onnx.TensorProto] = {}

    def add(self, kind: str, inputs: list[str], output: str, **attributes: object) -> str:
        """Add a node and return the name of its output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: object, kind: type = np.int64) -> str:
        """Add a constant and return its name."""
        self.tensors[name] = numpy_helper.from_array(np.asarray(value, dtype=kind), name)
        return name

    def weight(self, name: str) -> str:
        """Add a weight by its place in the file and return its name."""
        place = self._places[name]
        start, stop = place["data_offsets"]
        tensor = TensorProto(name=name, data_type=TYPES[place["dtype"]], dims=place["shape"])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._file), ("offset", self._begin + start), ("length", stop - start)):
            tensor.external_data.add(key=key, value=str(value))
        self.tensors[name] = tensor
        return name

    def linear(self, x: str, layer: str, output: str) -> str:
        """Add a linear layer."""
        return self.add("Gemm", [x, self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")], output, transB=1)

    def normalized(self, x: str, layer: str, output: str) -> str:
        """Add a normalization of each token's vector."""
        weights = [self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")]
        return self.add("LayerNormalization", [x, *weights], output, axis=-1, epsilon=EPSILON)


def encode(graph: Graph, x: str, rows: str, by_head: str, penalties: str = "", first: int = 0) -> str:
    """Add the layers of BERT over tokens, a row each, and return their result; `penalties` are of unseen tokens."""
    add = graph.add
    scale = graph.constant("scale", SIZE**-0.5, np.float32)
    for number in range(first, LAYERS):
        layer, own = f"encoder.layer.{number}", f"layer_{number}_"

        def heads(part: str, order: list[int], x: str = x, layer: str = layer, own: str = own) -> str:
            flat = graph.linear(x, f"{layer}.attention.self.{part}", f"{own}{part}")
            return add(
                "Transpose", [add("Reshape", [flat, by_head], f"{own}{part}_by_head")], f"{own}{part}s", perm=order
            )

        query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
        scores = add("Mul", [add("MatMul", [query, key], f"{own}products"), scale], f"{own}scaled")
        if penalties:
            scores = add("Add", [scores, penalties], f"{own}scores")
        scores = add("Softmax", [scores], f"{own}attention", axis=-1)
        seen = add("Transpose", [add("MatMul", [scores, value], f"{own}seen")], f"{own}turned", perm=[0, 2, 1, 3])
        seen = graph.linear(
            add("Reshape", [seen, rows], f"{own}context"), f"{layer}.attention.output.dense", f"{own}out"
        )
        x = graph.normalized(
            add("Add", [seen, x], f"{own}residual"), f"{layer}.attention.output.LayerNorm", f"{own}attended"
        )
        wide = add("Gelu", [graph.linear(x, f"{layer}.intermediate.dense", f"{own}wide")], f"{own}gelu")
        narrow = graph.linear(wide, f"{layer}.output.dense", f"{own}narrow")
        x = graph.normalized(add("Add", [narrow, x], f"{own}sum"), f"{layer}.output.LayerNorm", f"{own}result")
    return x


def model(weights: Path = WEIGHTS) -> bytes:
    """Return the model as ONNX."""
    graph = Graph(weights)
    add, constant = graph.add, graph.constant
    zero, one, two = (constant(name, [number]) for name, number in (("zero", 0), ("one", 1), ("two", 2)))
    rows = constant("rows", [-1, DIMENSIONS])
    add("Shape", ["ids"], "shape")
    by_token = add("Concat", ["shape", constant("dimensions", [DIMENSIONS])], "by_token", axis=0)
    by_head = add("Concat", ["shape", constant("heads", [HEADS, SIZE])], "by_head", axis=0)

    halves = add("Gather", [graph.weight("embeddings.word_embeddings.weight"), "ids"], "halves")
    words = add("Cast", [halves], "words", to=TensorProto.FLOAT)
    length = add("Slice", ["shape", one, two], "length")
    places = add("Slice", [graph.weight("embeddings.position_embeddings.weight"), zero, length, zero], "places")
    first = constant("first", 0)
    kind = add("Gather", [graph.weight("embeddings.token_type_embeddings.weight"), first], "kind")
    placed = add("Add", [places, kind], "placed")
    x = graph.normalized(add("Add", [words, placed], "embedded"), "embeddings.LayerNorm", "embeddings")
    x = add("Reshape", [x, rows], "tokens")

    mask = add("Cast", ["mask"], "mask_float", to=TensorProto.FLOAT)
    unseen = add("Sub", [constant("one_float", 1, np.float32), mask], "unseen")
    penalty = add("Mul", [unseen, constant("masked", MASKED, np.float32)], "penalty")
    add("Unsqueeze", [penalty, constant("heads_and_queries", [1, 2])], "penalties")

    x = encode(graph, x, rows, by_head, "penalties")

    x = add("Reshape", [x, by_token], "result")
    weighed = add("Mul", [x, add("Unsqueeze", [mask, constant("last", [-1])], "seen_tokens")], "weighed")
    total = add("ReduceSum", [weighed, one], "total", keepdims=0)
    add("LpNormalization", [total], "vectors", axis=1, p=2)  # of the sum, as of the mean

    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("ids", "mask")]
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", DIMENSIONS])
    made = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], list(graph.tensors.values()))
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(made, opset_imports=[opset], ir_version=IR_VERSION).SerializeToString(deterministic=True)


def main() -> int:
    """Write the graph, or compare."""
    made = model()
    if sys.argv[1:] == ["--check"]:
        return int(GRAPH.read_bytes() != made)
    GRAPH.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
