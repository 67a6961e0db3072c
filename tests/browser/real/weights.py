#!/usr/bin/env python3
"""Writes a model of the Llama kind with random weights: what it says means nothing, and the server that
loads it is the real one. One token for each byte; 2,048 tokens of context."""

import sys

import gguf
import numpy

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 2048
TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)

writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("random weights")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_file_type(gguf.LlamaFileType.ALL_F32)
writer.add_tokenizer_model("llama")
kinds = gguf.TokenType
tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL] + [kinds.BYTE] * 256)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_unk_token_id(0)
writer.add_vocab_size(len(tokens))
writer.add_chat_template(TEMPLATE)

random = numpy.random.default_rng(1)


def add(name, *shape):
    writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(numpy.float32))


def ones(name):
    writer.add_tensor(name, numpy.ones(WIDTH, dtype=numpy.float32))


add("token_embd.weight", len(tokens), WIDTH)
for layer in range(LAYERS):
    block = f"blk.{layer}"
    ones(f"{block}.attn_norm.weight")
    for part in ("q", "k", "v", "output"):
        add(f"{block}.attn_{part}.weight", WIDTH, WIDTH)
    ones(f"{block}.ffn_norm.weight")
    add(f"{block}.ffn_gate.weight", INNER, WIDTH)
    add(f"{block}.ffn_up.weight", INNER, WIDTH)
    add(f"{block}.ffn_down.weight", WIDTH, INNER)
ones("output_norm.weight")
# Printable letters are likelier, so that there is something to read.
output = (random.standard_normal((len(tokens), WIDTH)) * 0.05).astype(numpy.float32)
writer.add_tensor("output.weight", output)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
