"""A model run by ONNX Runtime. The one place that imports onnxruntime.

Heads and pooling that were exported with the model are part of the graph; an output's name says what it means or, where
an exporter gave none, its place does.
"""

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, OutOfMemory, require
from gristmill.models.device import CPU, choose_device
from gristmill.models.known_configs import max_length, pad_id
from gristmill.models.memory_limits import is_out_of_memory
from gristmill.models.runtime import Head, ModelSource

HIDDEN = ("last_hidden_state", "token_embeddings")  # names exporters give to the encoder's output
PROBABILITY = "probability"  # the name a guard's output has if it is not the only one
NUM_HEADS = 8


class OnnxRuntime:
    """A session with one thread pool of the size asked for."""

    def __init__(
        self,
        source: ModelSource,
        file: Path,
        *,
        config: Mapping[str, object],
        device: str,
        threads: int,
        head: Head,
    ) -> None:
        ort = require("onnxruntime", extra="models")
        if not source.allow_batch_dependent:
            refuse_batch_dependent(file, who=source.who)
        available = _devices(ort)
        self.device = choose_device(device, list(available), who=source.who)
        self.max_length = max_length(config)
        self.pad_id = pad_id(config)
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that wait in a loop for the next batch take the cores that the tokenizer works on.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session: Any = ort.InferenceSession(str(file), options, providers=available[self.device])
        except _load_errors(ort) as error:
            raise ConfigError(f"{source.who}: expected an ONNX model in {file}; got: {error}") from None
        self._kinds = {each.name: each.type for each in self._session.get_inputs()}
        unknown = self._kinds.keys() - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self._kinds:
            raise ConfigError(
                f"{source.who}: expected a model with the inputs input_ids and attention_mask; "
                f"{file} has {', '.join(self._kinds)}"
            )
        self._outputs = _outputs(self._session, head, file, who=source.who)
        self._shrink: Any = ort.RunOptions()
        self._shrink.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._failed = False
        self._probability_of = ""
        if head == "poison_guard":
            # Any number passes for a score, so a graph is tried before it is asked about documents.
            self._probability_of = f"{source.who}: {file}"
            ids = np.arange(16).reshape(4, 4)
            self.run(ids, np.ones_like(ids))

    def run(self, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> tuple[NDArray[np.float32], ...]:
        """Return what the model answers for a padded batch."""
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": np.zeros_like(input_ids) if "token_type_ids" in self._kinds else input_ids,
        }
        feed = {name: _as(given[name], kind) for name, kind in self._kinds.items()}
        # After a failure the arena holds what it had taken so far: the next call gives that back.
        options, self._failed = (self._shrink, False) if self._failed and self.device == CPU else (None, self._failed)
        try:
            outputs = self._session.run(self._outputs, feed, options)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self._failed = True
            rows, longest = input_ids.shape
            raise OutOfMemory(f"ONNX Runtime on {self.device}: {rows} rows of {longest} tokens do not fit") from None
        answers = tuple(np.asarray(output, dtype=np.float32) for output in outputs)
        if self._probability_of:
            _check_probabilities(answers[0], len(input_ids), self._probability_of)
        return answers

    def close(self) -> None:
        """Drop the session."""
        self._session = None


def _devices(ort: Any) -> dict[str, list[str]]:
    """Return the devices this build of ONNX Runtime can reach, the best first, with their providers."""
    there = ort.get_available_providers()
    devices = {}
    if "CUDAExecutionProvider" in there:
        devices["cuda:0"] = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    devices[CPU] = ["CPUExecutionProvider"]
    return devices


def _load_errors(ort: Any) -> tuple[type[Exception], ...]:
    """Return what ONNX Runtime raises for a file it cannot use."""
    names = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented")
    return tuple(getattr(ort.capi.onnxruntime_pybind11_state, name) for name in names)


def _as(values: NDArray[np.int64], kind: str) -> NDArray[Any]:
    return values.astype(np.int32) if kind == "tensor(int32)" else np.ascontiguousarray(values, dtype=np.int64)


def _outputs(session: Any, head: Head, file: Path, *, who: str) -> list[str]:
    """Return the names of the outputs that a head consists of."""
    outputs = session.get_outputs()
    names = [output.name for output in outputs]
    ranks = {output.name: len(output.shape or ()) for output in outputs}
    if head == "encoder":
        found = [name for name in HIDDEN if name in ranks] or [name for name in names if ranks[name] == 3]
        if not found:
            raise ConfigError(f"{who}: expected an output [rows, tokens, width] in {file}; got {', '.join(names)}")
        return found[:1]
    if head == "multi_head":
        if len(names) != NUM_HEADS:
            raise ConfigError(f"{who}: expected {NUM_HEADS} outputs in {file}; got {', '.join(names)}")
        return names
    shown = ", ".join(f"{output.name} [{', '.join(map(str, output.shape or ()))}]" for output in outputs[:8])
    if head == "poison_guard":
        if PROBABILITY not in names and (len(names) > 1 or names == ["logits"]):
            raise ConfigError(
                f"{who}: expected the output {PROBABILITY!r} [rows, 1] in {file}: what the guard answers after its "
                f"sigmoid, with the language model in the same graph; got {shown}"
            )
        return [PROBABILITY] if PROBABILITY in names else names
    if head == "generate":
        raise ConfigError(
            f"{who}: expected .safetensors, with runtime='torch' where there is both; got {file}. An ONNX "
            "graph answers once, and this model writes its answer token by token"
        )
    chosen = "logits" if "logits" in names else names[0]
    if ranks[chosen] > 2:
        raise ConfigError(f"{who}: expected an output [rows, labels] in {file}; got {shown}")
    return [chosen]


def _check_probabilities(answer: NDArray[np.float32], rows: int, where: str) -> None:
    """Raise ConfigError unless there is one number from 0 to 1 for each row. NaN is for the stage to find."""
    if answer.shape != (rows, 1):
        raise ConfigError(f"{where}: expected one probability for each of {rows} rows; got the shape {answer.shape}")
    if ((answer < 0) | (answer > 1)).any():
        raise ConfigError(
            f"{where}: expected probabilities from 0 to 1; got {answer.min():.3g} to {answer.max():.3g}. Export the "
            "guard with its sigmoid"
        )


# Dynamic quantisation takes the scale of its activations over the whole batch, so that a document's score depends on
# its neighbours: moved by 2e-3, where nothing else moves it (docs/log). A graph's operators tell whether it does that.
# They are read from the file itself: the package that knows the format is large and needed for nothing else.


def refuse_batch_dependent(file: Path, *, who: str) -> None:
    """Raise ConfigError if a document's answer depends on what else is in its batch."""
    dynamic = {name for name in operators(file) if name.startswith("DynamicQuantize")}
    if dynamic:
        raise ConfigError(
            f"{who}: expected a model whose answer for a document does not depend on its neighbours; {file} is "
            f"dynamically quantised ({', '.join(sorted(dynamic))}). Quantise the weights only, or accept scores that "
            "change with the batch: allow_batch_dependent=True"
        )


def operators(file: Path) -> set[str]:
    """Return the names of the operators in an ONNX file, those of functions and of graphs within graphs included."""
    if not file.stat().st_size:
        return set()
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found: set[str] = set()
        for number, start, end in _fields(data, 0, len(data)):
            if number == 7:  # ModelProto.graph
                _operators_of(data, start, end, node_field=1, found=found)
            elif number == 25:  # ModelProto.functions
                _operators_of(data, start, end, node_field=7, found=found)
        return found


def _operators_of(data: mmap.mmap, start: int, end: int, *, node_field: int, found: set[str]) -> None:
    for number, node, node_end in _fields(data, start, end):
        if number != node_field:
            continue
        for field, first, last in _fields(data, node, node_end):
            if field == 4:  # NodeProto.op_type
                found.add(data[first:last].decode("utf-8", "replace"))
            elif field == 5:  # NodeProto.attribute: the branches of If and the body of Loop are graphs (6, 11)
                for inner, deep, deep_end in _fields(data, first, last):
                    if inner in (6, 11):
                        _operators_of(data, deep, deep_end, node_field=1, found=found)


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (number, start, end) of the fields of a protobuf message that have a length; skip the others."""
    position = start
    while position < end:
        key, position = _varint(data, position)
        kind = key & 7
        if kind == 0:
            _, position = _varint(data, position)
        elif kind == 1:
            position += 8
        elif kind == 5:
            position += 4
        elif kind == 2:
            length, position = _varint(data, position)
            yield key >> 3, position, min(position + length, end)
            position += length
        else:
            return  # not protobuf: ONNX Runtime says so better


def _varint(data: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return value, position
