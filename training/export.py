"""Writes a trained reader as ONNX in int8, which takes its word embeddings from the embedding model's file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from minilm_graph import DIMENSIONS, HEADS, IR_VERSION, OPSET, SIZE, WEIGHTS, Graph, encode

WORDS = "embeddings.word_embeddings.weight"
SHARED = "layer_2_result"  # by which a prompt is known: what the first layers make of it
RELATION, PAIRS = "relation", "pairs."  # the output of a pair of statements, and how its weights' names begin


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
    words = add("Cast", [add("Gather", [WORDS, "ids"], "halves")], "words", to=TensorProto.FLOAT)
    length = add("Slice", ["shape", one, two], "length")
    places = add("Slice", [graph.weight("embeddings.position_embeddings.weight"), zero, length, zero], "places")
    kinds = add("Gather", [graph.weight("embeddings.token_type_embeddings.weight"), "segments"], "kinds")
    x = graph.normalized(
        add("Add", [add("Add", [words, places], "placed"), kinds], "embedded"), "embeddings.LayerNorm", "embeddings"
    )
    x = encode(graph, add("Reshape", [x, rows], "tokens"), rows, by_head)
    graph.linear(x, "heads", "logits")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"]) for name in ("ids", "segments")]
    inputs.append(helper.make_tensor_value_info(WORDS, TensorProto.FLOAT16, ["vocabulary", DIMENSIONS]))
    width = len(graph.state["heads.bias"])
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["tokens", size])
        for name, size in (("logits", width), (SHARED, DIMENSIONS))
    ]
    made = helper.make_graph(graph.nodes, "reader", inputs, outputs, list(graph.tensors.values()))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def write(state: dict[str, Tensor], file: Path) -> None:
    """Write the reader's graph with its weights."""
    model = _quantized(graph_of(state))
    places = Graph(WEIGHTS)
    places.weight(WORDS)
    model.graph.initializer.append(places.tensors[WORDS])
    [words] = [each for each in model.graph.input if each.name == WORDS]
    model.graph.input.remove(words)
    file.write_bytes(model.SerializeToString(deterministic=True))


def add_relations(state: dict[str, Tensor], first: int, file: Path) -> None:
    """Add to a reader's graph the layers from `first` on that read a pair of statements, and their output."""
    graph, begin = ReaderGraph(state), f"layer_{first - 1}_result"
    x = encode(graph, begin, "rows", "by_head", first=first)
    token = graph.add("Gather", [x, graph.constant("first_token", [0])], "token", axis=0)
    graph.linear(token, "heads", RELATION)
    inputs = [
        helper.make_tensor_value_info(begin, TensorProto.FLOAT, ["tokens", DIMENSIONS]),
        *(
            helper.make_tensor_value_info(name, TensorProto.INT64, [size])
            for name, size in (("rows", 2), ("by_head", 4))
        ),
    ]
    output = helper.make_tensor_value_info(RELATION, TensorProto.FLOAT, [1, len(graph.state["heads.bias"])])
    made = helper.make_graph(graph.nodes, "pairs", inputs, [output], list(graph.tensors.values()))
    pairs = _quantized(helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION))
    kept = {RELATION, *(each.name for each in inputs)}
    model = _without_relations(onnx.load(file, load_external_data=False))
    for tensor in pairs.graph.initializer:
        tensor.name = f"{PAIRS}{tensor.name}"
    for node in pairs.graph.node:
        node.name = node.name and f"{PAIRS}{node.name}"
        for names in (node.input, node.output):
            names[:] = [name if name in kept else f"{PAIRS}{name}" for name in names]
    model.graph.initializer.extend(pairs.graph.initializer)
    model.graph.node.extend(pairs.graph.node)
    model.graph.output.append(output)
    file.write_bytes(model.SerializeToString(deterministic=True))


def copy_relations(begun: onnx.ModelProto, file: Path) -> None:
    """Add to a reader's graph the reading of pairs of another, with which it shares its first layers."""
    model = onnx.load(file, load_external_data=False)
    nodes = [node for node in begun.graph.node if _is_of_relations(node)]
    assert nodes, "the reader that learns more reads no pairs"
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(each for each in begun.graph.initializer if each.name.startswith(PAIRS))
    model.graph.output.extend(each for each in begun.graph.output if each.name == RELATION)
    file.write_bytes(model.SerializeToString(deterministic=True))


def _is_of_relations(node: onnx.NodeProto) -> bool:
    return node.output[0] == RELATION or node.output[0].startswith(PAIRS)


def _without_relations(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a reader's graph without its reading of pairs, for another one."""
    for kept, parts in (
        ([node for node in model.graph.node if not _is_of_relations(node)], model.graph.node),
        ([each for each in model.graph.initializer if not each.name.startswith(PAIRS)], model.graph.initializer),
        ([each for each in model.graph.output if each.name != RELATION], model.graph.output),
    ):
        del parts[:]
        parts.extend(kept)
    return model


def weights_of(file: Path, part: str = "") -> dict[str, Tensor]:
    """Return the weights of a reader's graph, or of a part of it: those in int8 as they are computed with."""
    tensors = onnx.load(file, load_external_data=False).graph.initializer
    stored = {
        each.name.removeprefix(part): numpy_helper.to_array(each)
        for each in tensors
        if each.data_location != each.EXTERNAL and each.name.startswith(part)
    }
    weights = {}
    for name, values in stored.items():
        base = name.removesuffix("_quantized")
        if base != name:
            exact = (values.astype(np.float32) - stored[f"{base}_zero_point"]) * stored[f"{base}_scale"]
            values = np.ascontiguousarray(exact.T)
        if base.startswith(("encoder.", "embeddings.", "heads.")):
            weights[base] = torch.from_numpy(values.astype(np.float32).copy())
    return weights


def _quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        onnx.save(model, whole)
        quantize_dynamic(
            whole, small, op_types_to_quantize=["MatMul"], per_channel=True, reduce_range=True,
            weight_type=QuantType.QInt8, extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip
        return onnx.load(small)
