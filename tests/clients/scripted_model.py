"""A model whose replies are known, so that clients can be shown thinking and whole calls of tools: a real one of tiny-qwen3's architecture
and vocabulary, whose next token follows from the last one alone. Attention and MLP add nothing; each scripted token has a direction of
its own in the residual stream, which the output matrix turns into the token behind it.

The chat template, Hermes' in short, ends the prompt with one of three marks: of a reply that calls, thinks, or answers at once. The second
form has Gemma 4's control tokens: where thinking is off the prompt ends behind its channel, and the model calls, until it has a result.
"""

import json
import os
import shutil
import struct

CALL, THINK, TALK = "<|call|>", "<|think|>", "<|talk|>"
NAME, ARGUMENTS = "get_weather", {"city": "Oslo"}
THOUGHT = "The person asks for Oslo."
ANSWER = "It is seven degrees in Oslo, and the rain stays."

END_OF_CALL = json.dumps(ARGUMENTS) + "}\n</tool_call>"
SCRIPTS = [
    [TALK, "It is", " seven degrees", " in Oslo", ", and", " the rain", " stays.", "<|im_end|>"],
    [THINK, "<think>\nThe person", " asks for Oslo.", "\n</think>\n\n", "It is"],
    [CALL, f'<tool_call>\n{{"name": "{NAME}", "arguments": ', END_OF_CALL, "<|im_end|>"],
    ['\u0120"', f'{NAME}", "arguments": ' + END_OF_CALL, "<|im_end|>"],  # behind a prompt that ends in '{"name": "'
]
ELSEWHERE = " " + END_OF_CALL  # behind any other token, as at the end of '{"name": "get_weather", "arguments":'

TEMPLATE = """
{%- if tools %}{{ '<|im_start|>system\\n' }}{%- for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{%- endfor %}{{ '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}{{ 'CALL' if message.tool_calls else 'TALK' }}{%- endif %}
    {{- message.content or '' }}
    {%- for call in message.tool_calls or [] %}
        {{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
        {{- call.function.arguments if call.function.arguments is string else call.function.arguments | tojson }}
        {{- '}\\n</tool_call>' }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if tools and messages[-1].role != 'tool' %}{{ 'CALL' }}
    {%- elif enable_thinking is defined and enable_thinking %}{{ 'THINK' }}
    {%- else %}{{ 'TALK' }}{%- endif %}
{%- endif %}""".replace("CALL", CALL).replace("THINK", THINK).replace("TALK", TALK)

HERMES = (SCRIPTS, ELSEWHERE, TEMPLATE)  # scripts, the token behind any other one, the chat template

GEMMA_SCRIPTS = [
    ["<channel|>", "<|tool_call>", f"call:{NAME}{{city:", '<|"|>', 'Oslo<|"|>}', "<tool_call|>", "<|tool_response>"],
    [":", f"{NAME}{{city:", '<|"|>'],  # behind a prompt that ends in "<|tool_call>call:"
    ["\u010a", "<|channel>", "thought\n" + THOUGHT, "<channel|>"],
    ["<tool_response|>", *SCRIPTS[0][1:-1], "<turn|>"],
]
GEMMA_ELSEWHERE = '{city:<|"|>Oslo<|"|>}'  # as behind a prompt that ends in the name
GEMMA_TEMPLATE = """
{%- if tools %}{{ '<|turn>system\\n' }}{%- for tool in tools %}{{ '<|tool>' }}{{ tool | tojson }}{{ '<tool|>' }}{%- endfor %}{{ '<turn|>\\n' }}{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}{{ 'response:' + message.name | default('tool') + '{value:<|"|>' + message.content + '<|"|>}<tool_response|>' }}
    {%- else %}
        {{- '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {{- '<|tool_call>call:' + call.function.name + '{' }}
            {%- for key, value in call.function.arguments.items() %}{{ key + ':<|"|>' + value + '<|"|>' }}{%- endfor %}
            {{- '}<tool_call|>' }}
        {%- endfor %}
        {{- '<|tool_response>' if message.tool_calls else '<turn|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt and messages[-1].role != 'tool' %}
    {{- '<|turn>model\\n' }}
    {%- if not enable_thinking %}{{ '<|channel>thought\\n<channel|>' }}{%- endif %}
{%- endif %}"""
GEMMA = (GEMMA_SCRIPTS, GEMMA_ELSEWHERE, GEMMA_TEMPLATE)
GEMMA_MARKS = ["<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", '<|"|>',
               "<|tool_response>", "<tool_response|>"]

ONE, FOUR = 0x3F80, 0x4080  # in BF16


def _json(folder, name, change):
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    change(content)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return content


def write(base, folder, form=HERMES):
    """Writes the model to a new folder; base: that of tiny-qwen3."""
    scripts, elsewhere, template = form
    os.makedirs(folder)
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(base, name), folder)

    ids, added = {}, []

    def extend(tokenizer):
        ids.update(tokenizer["model"]["vocab"])
        ids.update((token["content"], token["id"]) for token in tokenizer["added_tokens"])
        marks = GEMMA_MARKS if form is GEMMA else []
        for text in [elsewhere, *marks, *(text for script in scripts for text in script)]:
            if text not in ids:
                ids[text] = max(ids.values()) + 1
                added.append({"id": ids[text], "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": text in marks or (form is HERMES and text.startswith("<|"))})
        tokenizer["added_tokens"] += added

    _json(folder, "tokenizer.json", extend)

    def configure(config):
        for token in added:
            config["added_tokens_decoder"][str(token["id"])] = {key: value for key, value in token.items() if key != "id"}
        config["chat_template"] = template

    _json(folder, "tokenizer_config.json", configure)
    config = _json(folder, "config.json", lambda config: config.update(
        num_hidden_layers=1, max_window_layers=1, tie_word_embeddings=False, vocab_size=max(ids.values()) + 1))
    _write_weights(os.path.join(folder, "model.safetensors"), config, ids, scripts, elsewhere)


def _write_weights(path, config, ids, scripts, elsewhere):
    hidden, vocab, inner, head = (config[name] for name in ("hidden_size", "vocab_size", "intermediate_size", "head_dim"))
    queries, keys = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    follows = {ids[before]: ids[after] for script in scripts for before, after in zip(script, script[1:])}
    follows[ids[elsewhere]] = ids["<|im_end|>" if elsewhere == ELSEWHERE else "<tool_call|>"]
    direction = {token: 1 + i for i, token in enumerate(follows)}  # 0 is that of all others
    assert len(direction) < hidden
    embedding, output = [0] * (vocab * hidden), [0] * (vocab * hidden)
    for token in range(vocab):
        embedding[token * hidden + direction.get(token, 0)] = ONE
    for token, after in follows.items():
        output[after * hidden + direction[token]] = FOUR
    output[ids[elsewhere] * hidden] = FOUR

    layer = "model.layers.0."
    tensors = {"model.embed_tokens.weight": ([vocab, hidden], embedding), "lm_head.weight": ([vocab, hidden], output)}
    for name, rows, columns in (("self_attn.q_proj", queries, hidden), ("self_attn.k_proj", keys, hidden),
                                ("self_attn.v_proj", keys, hidden), ("self_attn.o_proj", hidden, queries),
                                ("mlp.gate_proj", inner, hidden), ("mlp.up_proj", inner, hidden), ("mlp.down_proj", hidden, inner)):
        tensors[f"{layer}{name}.weight"] = ([rows, columns], [0] * (rows * columns))
    for name, size in (("self_attn.q_norm", head), ("self_attn.k_norm", head), ("input_layernorm", hidden),
                       ("post_attention_layernorm", hidden)):
        tensors[f"{layer}{name}.weight"] = ([size], [ONE] * size)
    tensors["model.norm.weight"] = ([hidden], [ONE] * hidden)

    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}H", *values)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
