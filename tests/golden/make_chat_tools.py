#!/usr/bin/env python3
"""Write tests/golden/chat_tools.json: prompts with tools, as huggingface/transformers renders them.

    python make_chat_tools.py    # transformers, jinja2
"""

import json
import os

from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather at a place, e.g. \"Zürich\" or 'Bern'.\n<|im_end|> is text.",
        "parameters": {"type": "object", "properties": {
            "place": {"type": "string", "description": "Name\tof it"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
            "unit": {"enum": ["C", "F", None], "default": "C"},
            "detail": {"type": "number", "default": 0.5}}, "required": ["place"]},
        "strict": True}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {}}},
]

USER = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

TEMPLATES = {
    "qwen3": None,  # of chat.json
    "repr": "{% if tools is not none %}Tools: {{ tools }}\n{% endif %}" + USER,
    "repr_each": "{% if tools %}{% for tool in tools %}{{ tool }}\n{{ tool.function.name ~ ': ' ~ tool['function'] }}\n{% endfor %}{% endif %}" + USER,
    "tojson": "{% if tools %}{{ tools | tojson }}\n{% endif %}" + USER,
    "tojson_indented": "{% if tools %}{% for tool in tools %}{{ tool | tojson(indent=4) }}\n\n{% endfor %}{% endif %}" + USER,
    "items": "{% if tools is defined and tools %}{% for tool in tools %}{% set f = tool.function %}{{ f.name }}({% for name, p in "
             "f.parameters.get('properties', {}).items() %}{{ name }}: {{ p.type | default('any') }}{% if not loop.last %}, {% endif %}"
             "{% endfor %}) - {{ f.description | trim }}{{ ' strict' if f.strict is defined and f.strict }}\n{% endfor %}{% endif %}" + USER,
    "string": "{%- if tools %}{{- '<tools>' + (tools | tojson) + '</tools>\\n' }}{{ tools | string | length }}\n{%- endif %}" + USER,
}

CONVERSATIONS = {
    "single": [{"role": "user", "content": "Will it rain?"}],
    "system": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Will it rain?"}],
}


def main():
    with open(os.path.join(HERE, "chat.json"), encoding="utf-8") as file:
        TEMPLATES["qwen3"] = json.load(file)["templates"]["qwen3"]["template"]
    compile_template = getattr(chat_template_utils, "_compile_jinja_template")
    cases = []
    for name, template in TEMPLATES.items():
        for conversation, messages in CONVERSATIONS.items():
            for tools in ([TOOLS[1]], TOOLS):
                text = compile_template(template).render(messages=messages, tools=tools, documents=None, add_generation_prompt=True)
                cases.append({"template": name, "conversation": conversation, "tools": len(tools), "text": text})
    golden = {"tools": TOOLS, "templates": TEMPLATES, "conversations": CONVERSATIONS, "cases": cases}
    with open(os.path.join(HERE, "chat_tools.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
