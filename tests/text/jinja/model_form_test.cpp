// Templates in the forms of Gemma, Mistral and Llama 3.1: alternation checks, tools, content in parts, dates. The
// expected results are those of Jinja 3.1.

#include "tests/text/jinja/jinja_test.h"

namespace canopy::jinja {
namespace {

struct Case {
  const char* values;
  const char* text;   // of the result, or
  const char* error;  // a part of the message
};

void expect_cases(const char* source, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.values);
    const Json values = Json::parse(c.values);
    if (c.error != nullptr) {
      EXPECT_NE(error_of(source, values).find(c.error), std::string::npos) << error_of(source, values);
    } else {
      EXPECT_EQ(rendered(source, values), c.text);
    }
  }
}

TEST(JinjaModelForms, Gemma) {
  constexpr auto source = R"j({{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set preface = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set preface = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set preface = '' -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for turn in turns -%}
    {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Turns must alternate') }}
    {%- endif -%}
    {%- set name = 'model' if turn['role'] == 'assistant' else turn['role'] -%}
    {{ '<start_of_turn>' + name + '\n' + (preface if loop.first else '') }}
    {%- if turn['content'] is string -%}
        {{ turn['content'] | trim }}
    {%- elif turn['content'] is iterable -%}
        {%- for part in turn['content'] -%}
            {%- if part['type'] == 'image' -%}{{ '<image>' }}{%- elif part['type'] == 'text' -%}{{ part['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception('Unknown content') }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%})j";
  expect_cases(
      source,
      {
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "system", "content": " Be kind. "}, {"role": "user", "content": " hi "}, {"role": "assistant", "content": " hello "}, {"role": "user", "content": "bye"}]})j",
           "<s><start_of_turn>user\n"
           " Be kind. \n"
           "\n"
           "hi<end_of_turn>\n"
           "<start_of_turn>model\n"
           "hello<end_of_turn>\n"
           "<start_of_turn>user\n"
           "bye<end_of_turn>\n"
           "<start_of_turn>model\n",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "user", "content": " hi "}]})j",
           "<s><start_of_turn>user\n"
           "hi<end_of_turn>\n"
           "<start_of_turn>model\n",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " see "}]}]})j",
           "<s><start_of_turn>user\n"
           "<image>see<end_of_turn>\n"
           "<start_of_turn>model\n",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "user", "content": " hi "}, {"role": "user", "content": "bye"}]})j",
           nullptr, "Turns must alternate"},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "user", "content": 3}]})j",
           nullptr, "Unknown content"},
      });
}

TEST(JinjaModelForms, Mistral) {
  constexpr auto source = R"j({%- if messages[0]["role"] == "system" %}
    {%- set instructions = messages[0]["content"] %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set rest = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set asked = rest | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace(count=0) %}
{%- for message in rest %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.count % 2 == 0) %}
            {{- raise_exception("Roles must alternate") }}
        {%- endif %}
        {%- set ns.count = ns.count + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in rest %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == asked[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and instructions is defined %}
            {{- "[INST] " + instructions + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "tool_calls" or message.tool_calls is defined %}
        {{- "[TOOL_CALLS] [" }}
        {%- for call in message.tool_calls %}
            {%- set out = call.function|tojson %}
            {{- out[:-1] }}
            {%- if not call.id is defined or call.id|length != 9 %}
                {{- raise_exception("Call ids have nine characters") }}
            {%- endif %}
            {{- ', "id": "' + call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token }}
    {%- endif %}
{%- endfor %})j";
  expect_cases(
      source,
      {
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "system", "content": " Be kind. "}, {"role": "user", "content": " hi "}, {"role": "assistant", "content": " hello "}, {"role": "user", "content": "bye"}]})j",
           "<s>[INST]  hi [/INST] hello</s>[INST]  Be kind. \n"
           "\n"
           "bye[/INST]",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "user", "content": " hi "}]})j",
           "<s>[INST]  hi [/INST]", nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "tools": [{"type": "function", "function": {"name": "add", "description": "Sums", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}}, {"type": "function", "function": {"name": "add", "description": "Sums", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}}], "messages": [{"role": "user", "content": " hi "}, {"role": "assistant", "tool_calls": [{"id": "123456789", "function": {"name": "add", "arguments": {"a": "1", "b": "x"}}}]}, {"role": "tool", "content": "3"}, {"role": "assistant", "content": " hello "}, {"role": "user", "content": "bye"}]})j",
           "<s>[INST]  hi [/INST][TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": \"1\", \"b\": \"x\"}, "
           "\"id\": \"123456789\"}]</s> hello</s>[AVAILABLE_TOOLS] [{\"type\": \"function\", \"function\": {\"name\": "
           "\"add\", \"description\": \"Sums\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": "
           "{\"type\": \"number\"}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"add\", \"description\": "
           "\"Sums\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": "
           "\"number\"}}}}}][/AVAILABLE_TOOLS][INST] bye[/INST]",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "user", "content": " hi "}, {"role": "user", "content": "bye"}]})j",
           nullptr, "Roles must alternate"},
      });
}

TEST(JinjaModelForms, Llama31) {
  constexpr auto source = R"j({{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system message stands apart, so that it can go anywhere. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: ipython\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\n\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\n\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- "<|python_tag|>" + tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' + arg_val + '"' }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else %}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
)j";
  expect_cases(
      source,
      {
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "system", "content": " Be kind. "}, {"role": "user", "content": " hi "}, {"role": "assistant", "content": " hello "}, {"role": "user", "content": "bye"}]})j",
           "<s><|start_header_id|>system<|end_header_id|>\n"
           "\n"
           "Today Date: 05 Nov 2026\n"
           "\n"
           "Be kind.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
           "\n"
           "hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
           "\n"
           "hello<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
           "\n"
           "bye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
           "\n",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "tools": [{"type": "function", "function": {"name": "add", "description": "Sums", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}}], "messages": [{"role": "user", "content": " hi "}, {"role": "assistant", "tool_calls": [{"id": "123456789", "function": {"name": "add", "arguments": {"a": "1", "b": "x"}}}]}, {"role": "tool", "content": "3"}]})j",
           "<s><|start_header_id|>system<|end_header_id|>\n"
           "\n"
           "Environment: ipython\n"
           "Today Date: 05 Nov 2026\n"
           "\n"
           "{\n"
           "    \"type\": \"function\",\n"
           "    \"function\": {\n"
           "        \"name\": \"add\",\n"
           "        \"description\": \"Sums\",\n"
           "        \"parameters\": {\n"
           "            \"type\": \"object\",\n"
           "            \"properties\": {\n"
           "                \"a\": {\n"
           "                    \"type\": \"number\"\n"
           "                }\n"
           "            }\n"
           "        }\n"
           "    }\n"
           "}\n"
           "\n"
           "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
           "\n"
           "hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
           "\n"
           "{\"name\": \"add\", \"parameters\": {\"a\": \"1\", \"b\": "
           "\"x\"}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n"
           "\n"
           "\"3\"<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
           "\n",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "builtin_tools": ["add", "code_interpreter"], "date_string": "1 May", "messages": [{"role": "user", "content": " hi "}, {"role": "assistant", "tool_calls": [{"id": "123456789", "function": {"name": "add", "arguments": {"a": "1", "b": "x"}}}]}]})j",
           "<s><|start_header_id|>system<|end_header_id|>\n"
           "\n"
           "Environment: ipython\n"
           "Tools: add\n"
           "\n"
           "Today Date: 1 May\n"
           "\n"
           "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
           "\n"
           "hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
           "\n"
           "<|python_tag|>add.call(a=\"1\", b=\"x\")<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
           "\n",
           nullptr},
          {R"j({"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "messages": [{"role": "assistant", "tool_calls": [{"id": "123456789", "function": {"name": "add", "arguments": {"a": "1", "b": "x"}}}, {"id": "123456789", "function": {"name": "add", "arguments": {"a": "1", "b": "x"}}}]}]})j",
           nullptr, "One call at a time"},
      });
}

}  // namespace
}  // namespace canopy::jinja
