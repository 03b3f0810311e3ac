"""Writes a trained reader as ONNX in int8, which takes its word embeddings from the embedding model's file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from minilm_graph import DIMENSIONS, HEADS, IR_VERSION, OPSET, SIZE, WEIGHTS, Graph, encode

WORDS = "embeddings.word_embeddings.weight"


class ReaderGraph(Graph):
    """A graph whose weights are a trained reader's own, but for the word embeddings."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__(WEIGHTS)
        self.state = {name: values.numpy() for name, values in state.items()}

    def weight(self, name: str) -> str:
        """Add a weight and return its name."""
        self.tensors[name] = numpy_helper.from_array(self.state[name], name)
        return name

    def linear(self, x: str, layer: str, output: str) -> str:
        """Add a linear layer, of which the product is in int8."""
        name = f"{layer}.weight"
        self.tensors[name] = numpy_helper.from_array(np.ascontiguousarray(self.state[name].T), name)
        product = self.add("MatMul", [x, name], f"{output}_product")
        return self.add("Add", [product, self.weight(f"{layer}.bias")], output)


def graph_of(state: dict[str, Tensor]) -> onnx.ModelProto:
    """Return the graph of one message at a time, with the word embeddings as an input."""
    graph = ReaderGraph(state)
    add, constant = graph.add, graph.constant
    zero, one, two = (constant(name, [number]) for name, number in (("zero", 0), ("one", 1), ("two", 2)))
    rows = constant("rows", [-1, DIMENSIONS])
    add("Shape", ["ids"], "shape")
    by_head = add("Concat", ["shape", constant("heads_of_layers", [HEADS, SIZE])], "by_head", axis=0)
    words = add("Gather", [WORDS, "ids"], "words")
    length = add("Slice", ["shape", one, two], "length")
    places = add("Slice", [graph.weight("embeddings.position_embeddings.weight"), zero, length, zero], "places")
    kinds = add("Gather", [graph.weight("embeddings.token_type_embeddings.weight"), "segments"], "kinds")
    x = graph.normalized(
        add("Add", [add("Add", [words, places], "placed"), kinds], "embedded"), "embeddings.LayerNorm", "embeddings"
    )
    x = encode(graph, add("Reshape", [x, rows], "tokens"), rows, by_head)
    graph.linear(x, "heads", "logits")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"]) for name in ("ids", "segments")]
    inputs.append(helper.make_tensor_value_info(WORDS, TensorProto.FLOAT, ["vocabulary", DIMENSIONS]))
    width = len(graph.state["heads.bias"])
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["tokens", width])
    made = helper.make_graph(graph.nodes, "reader", inputs, [output], list(graph.tensors.values()))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def write(state: dict[str, Tensor], file: Path) -> None:
    """Write the reader's graph with its weights."""
    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        onnx.save(graph_of(state), whole)
        quantize_dynamic(
            whole, small, op_types_to_quantize=["MatMul"], per_channel=True, reduce_range=True,
            weight_type=QuantType.QInt8, extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip
        model = onnx.load(small)
    places = Graph(WEIGHTS)
    places.weight(WORDS)
    model.graph.initializer.append(places.tensors[WORDS])
    [words] = [each for each in model.graph.input if each.name == WORDS]
    model.graph.input.remove(words)
    file.write_bytes(model.SerializeToString(deterministic=True))
