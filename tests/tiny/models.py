"""Turns a path into a tiny random-weight GGUF that real llama.cpp serves as a decision model.

`write_clef` makes architecture `clef` (questions of a request decided jointly, options sorted by key, HTTP 500 above
the physical batch); `write_openjev` makes decision type `openjev` (each question alone, at most 52 options, HTTP 400
above the context). Both load in well under a second. Their probabilities mean nothing and are the same for the same
input. The vocabulary is the 256 bytes, a few special tokens and ten merges, so a character is about a token.

Names, shapes and metadata follow llama.cpp's `clef`, `qwen35` and `llama` architectures (build 11434). Shapes stand
as ggml has them, innermost dimension first.
"""

from pathlib import Path
from typing import Any

import gguf
import numpy as np

EMBEDDING = 64
HEADS = 4
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>"),
)
MERGES = ("t h", "i n", "e r", "a n", "o n", "\u0120 t", "r e", "o u", "\u0120 a", "i s")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

CLEF_TEMPLATE = (
    "<|im_start|>user\nSTATE:\n"
    "{% if images %}{{ sep }}{% for i in images %}{{ i }}{% endfor %}{{ '\\n' }}{% endif %}"
    "{{ sep }}{{ state if state is string else state | tojson }}{{ sep }}\nFIELDS:\n"
    "{% for q in questions %}{{ sep }}{{ 'FIELD ' }}{{ q.id }} {{ q.type }}: "
    "{{ sep }}{{ mark_question }}{{ q.instructions if q.instructions is string else q.instructions | tojson }}"
    "{{ sep }}{{ '\\nOPTIONS\\n' }}"
    "{% for o in q.options %}{{ sep }}{{ '- ' }}{{ sep }}{{ mark_option }}{{ o.key }}"
    "{% if o.description is not none %}: "
    "{{ o.description if o.description is string else o.description | tojson }}{% endif %}"
    "{{ sep }}{{ '\\n' }}{% endfor %}{% endfor %}{{ sep }}<|im_end|>\n"
)
OPENJEV_TEMPLATE = (
    "<|im_start|>user\n{{ state if state is string else state | tojson }}\n\n"
    "{{ instructions if instructions is string else instructions | tojson }}\n"
    "{% for o in options %}{{ '" + LETTERS + "'[loop.index0] }}) {{ o.key }}"
    "{% if o.description %}: {{ o.description if o.description is string else o.description | tojson }}{% endif %}\n"
    "{% endfor %}<|im_end|>\n<|im_start|>assistant\n"
)


def write_clef(path: Path, layers: int = 4) -> Path:
    """A joint decision model of about 1 MB."""
    model = _Writer(path, "clef", seed=7)
    model.transformer(layers, key_value_heads=2)
    _clef_metadata(model)
    model.vocabulary("qwen35", CLEF_TEMPLATE)
    model.embeddings()
    for layer in range(layers):
        _clef_layer(model, layer)
    _decision_head(model)
    return model.finish()


def write_openjev(path: Path, layers: int = 2) -> Path:
    """A one-question-at-a-time decision model of about 0.5 MB."""
    model = _Writer(path, "llama", seed=11)
    model.transformer(layers, key_value_heads=HEADS)
    model.file.add_rope_dimension_count(EMBEDDING // HEADS)
    model.file.add_string("llama.decision.type", "openjev")
    model.vocabulary("qwen2", OPENJEV_TEMPLATE)
    model.embeddings()
    for layer in range(layers):
        at = f"blk.{layer}"
        model.constant(f"{at}.attn_norm.weight", EMBEDDING, 1)
        model.constant(f"{at}.ffn_norm.weight", EMBEDDING, 1)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            model.random(f"{at}.{name}.weight", EMBEDDING, EMBEDDING)
        _feed_forward(model, at)
    return model.finish()


def write_chat(path: Path) -> Path:
    """A model that loads and writes text, but decides nothing: /v1/systemone answers 501."""
    model = _Writer(path, "llama", seed=13)
    model.transformer(1, key_value_heads=HEADS)
    model.file.add_rope_dimension_count(EMBEDDING // HEADS)
    model.vocabulary("qwen2", None)
    model.embeddings()
    model.constant("blk.0.attn_norm.weight", EMBEDDING, 1)
    model.constant("blk.0.ffn_norm.weight", EMBEDDING, 1)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        model.random(f"blk.0.{name}.weight", EMBEDDING, EMBEDDING)
    _feed_forward(model, "blk.0")
    return model.finish()


def write_projector(path: Path) -> Path:
    """The header of a projector for images; nothing that llama.cpp could load."""
    writer: Any = gguf.GGUFWriter(str(path), "clip")
    writer.add_type("mmproj")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


# Gated delta net, the layers of Qwen 3.5 that are not full attention.
STATE, GROUPS, RANK, CONVOLUTION = 16, 2, 4, 4
HEAD = 16
FULL_ATTENTION_EVERY = 4
# The joint decision head.
WIDTH, HEAD_FEED_FORWARD, ROUTING_BLOCKS, JOINT_BLOCKS = 32, 64, 1, 2


def _clef_metadata(model: "_Writer") -> None:
    file = model.file
    file.add_key_length(HEAD)
    file.add_value_length(HEAD)
    file.add_layer_norm_eps(1e-5)
    file.add_rope_dimension_count(HEAD // 2)
    file.add_rope_freq_base(1e7)
    file.add_array("clef.rope.dimension_sections", [HEAD // 8, HEAD // 16, HEAD // 16, 0])
    numbers = {
        "ssm.conv_kernel": CONVOLUTION,
        "ssm.inner_size": STATE * RANK,
        "ssm.state_size": STATE,
        "ssm.time_step_rank": RANK,
        "ssm.group_count": GROUPS,
        "full_attention_interval": FULL_ATTENTION_EVERY,
        "decision.block_count": JOINT_BLOCKS,
        "decision.routing_block_count": ROUTING_BLOCKS,
        "decision.head_count": HEADS,
    }
    for key, value in numbers.items():
        file.add_uint32(f"clef.{key}", value)
    file.add_string("clef.decision.type", "clef")


def _clef_layer(model: "_Writer", layer: int) -> None:
    at = f"blk.{layer}"
    model.constant(f"{at}.attn_norm.weight", EMBEDDING, 1)
    model.constant(f"{at}.post_attention_norm.weight", EMBEDDING, 1)
    if (layer + 1) % FULL_ATTENTION_EVERY == 0:
        model.random(f"{at}.attn_q.weight", EMBEDDING, HEAD * HEADS * 2)
        model.random(f"{at}.attn_k.weight", EMBEDDING, HEAD * 2)
        model.random(f"{at}.attn_v.weight", EMBEDDING, HEAD * 2)
        model.random(f"{at}.attn_output.weight", HEAD * HEADS, EMBEDDING)
        model.constant(f"{at}.attn_q_norm.weight", HEAD, 1)
        model.constant(f"{at}.attn_k_norm.weight", HEAD, 1)
    else:
        values = STATE * RANK
        channels = STATE * GROUPS * 2 + values
        model.random(f"{at}.attn_qkv.weight", EMBEDDING, channels)
        model.random(f"{at}.attn_gate.weight", EMBEDDING, values)
        model.random(f"{at}.ssm_conv1d.weight", CONVOLUTION, channels)
        model.random(f"{at}.ssm_dt.bias", RANK)
        model.constant(f"{at}.ssm_a", RANK, -1)
        model.random(f"{at}.ssm_beta.weight", EMBEDDING, RANK)
        model.random(f"{at}.ssm_alpha.weight", EMBEDDING, RANK)
        model.constant(f"{at}.ssm_norm.weight", STATE, 1)
        model.random(f"{at}.ssm_out.weight", values, EMBEDDING)
    _feed_forward(model, at)


def _feed_forward(model: "_Writer", at: str) -> None:
    model.random(f"{at}.ffn_gate.weight", EMBEDDING, EMBEDDING * 2)
    model.random(f"{at}.ffn_down.weight", EMBEDDING * 2, EMBEDDING)
    model.random(f"{at}.ffn_up.weight", EMBEDDING, EMBEDDING * 2)


def _decision_head(model: "_Writer") -> None:
    for block in range(ROUTING_BLOCKS + JOINT_BLOCKS):
        at = f"dec.blk.{block}"
        if block < ROUTING_BLOCKS:
            model.norm(f"{at}.cross_attn_norm_kv", WIDTH)
        else:
            model.norm(f"{at}.attn_norm", WIDTH)
            for part in "qkvo":
                model.linear(f"{at}.attn_{part}", WIDTH, WIDTH)
        model.norm(f"{at}.cross_attn_norm", WIDTH)
        for part in "qkvo":
            model.linear(f"{at}.cross_attn_{part}", WIDTH, WIDTH)
        model.norm(f"{at}.ffn_norm", WIDTH)
        model.linear(f"{at}.ffn_up", WIDTH, HEAD_FEED_FORWARD)
        model.linear(f"{at}.ffn_down", HEAD_FEED_FORWARD, WIDTH)
    model.norm("decision.hidden_norm", EMBEDDING)
    for name in ("option_summary_norm", "field_norm", "option_norm"):
        model.norm(f"decision.{name}", WIDTH)
    for name in ("memory", "question", "option_question", "global", "option_context", "option_lexical"):
        model.random(f"decision.proj_{name}.weight", EMBEDDING, WIDTH)
    model.file.add_tensor("decision.scales", np.array([10, 10, 0.5], np.float32))
    model.random("token_types.weight", WIDTH, 3)
    model.linear("decision.scorer", 4 * WIDTH, WIDTH)
    model.linear("decision.scorer_out", WIDTH, 1)


class _Writer:
    """A GGUF being written, with the tensors every tiny model shares."""

    def __init__(self, path: Path, architecture: str, seed: int) -> None:
        self.path = path
        self.file: Any = gguf.GGUFWriter(str(path), architecture)
        self.tokens = _byte_alphabet() + list(SPECIAL) + [merge.replace(" ", "") for merge in MERGES]
        self._random = np.random.default_rng(seed)

    def transformer(self, layers: int, key_value_heads: int) -> None:
        self.file.add_name(f"tiny-{self.path.stem}")
        self.file.add_context_length(32768)
        self.file.add_embedding_length(EMBEDDING)
        self.file.add_block_count(layers)
        self.file.add_feed_forward_length(EMBEDDING * 2)
        self.file.add_head_count(HEADS)
        self.file.add_head_count_kv(key_value_heads)
        self.file.add_layer_norm_rms_eps(1e-6)

    def vocabulary(self, pre_tokenizer: str, template: str | None) -> None:
        self.file.add_tokenizer_model("gpt2")
        self.file.add_tokenizer_pre(pre_tokenizer)
        self.file.add_token_list(self.tokens)
        self.file.add_token_types([1] * 256 + [3] * len(SPECIAL) + [1] * len(MERGES))
        self.file.add_token_merges(list(MERGES))
        self.file.add_bos_token_id(256)
        self.file.add_eos_token_id(258)
        self.file.add_pad_token_id(256)
        self.file.add_add_bos_token(False)
        if template is not None:
            self.file.add_chat_template([{"name": "systemone", "template": template}])

    def embeddings(self) -> None:
        self.random("token_embd.weight", EMBEDDING, len(self.tokens), scale=1.0)
        self.constant("output_norm.weight", EMBEDDING, 1)
        self.random("output.weight", EMBEDDING, len(self.tokens))

    def random(self, name: str, *shape: int, scale: float | None = None) -> None:
        data = self._random.standard_normal(shape[::-1]) * (scale or shape[0] ** -0.5)
        self.file.add_tensor(name, data.astype(np.float32))

    def constant(self, name: str, size: int, value: float) -> None:
        self.file.add_tensor(name, np.full(size, value, np.float32))

    def norm(self, name: str, size: int) -> None:
        self.constant(f"{name}.weight", size, 1)
        self.constant(f"{name}.bias", size, 0)

    def linear(self, name: str, rows_in: int, rows_out: int) -> None:
        self.random(f"{name}.weight", rows_in, rows_out)
        self.constant(f"{name}.bias", rows_out, 0)

    def finish(self) -> Path:
        self.file.write_header_to_file()
        self.file.write_kv_data_to_file()
        self.file.write_tensors_to_file()
        self.file.close()
        return self.path


def _byte_alphabet() -> list[str]:
    """The printable stand-ins that byte-level BPE uses for the 256 bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    table = {byte: chr(byte) for byte in shown} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}
    return [table[byte] for byte in range(256)]
