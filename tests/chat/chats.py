"""Conversations for the comparisons of chat templates: what people have, and what is odd."""

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city <now> & here.",
     "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Its name: \"Köln\"", "enum": ["Köln", "Rome"]},
                    "days": {"type": "integer", "default": 1}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {
        "a": {"type": "number"}, "b": {"type": ["number", "null"]}, "list": {"type": "array", "items": {"type": "string"}}}, "required": []}}},
]


def user(text):
    return {"role": "user", "content": text}


def answer(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, number="call00001"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text, number="call00001", name="get_weather"):
    return {"role": "tool", "name": name, "content": text, "tool_call_id": number}


ONE = [user("Hi"), answer("Hello!")]
TWO = ONE + [user("And you?"), answer("Fine.")]
CALL = [user("Weather in Köln?"), {"role": "assistant", "tool_calls": [call("get_weather", {"city": "Köln", "days": 2})]},
        result('{"temp": 21.5}'), answer("21.5 degrees.")]
ODD = ["", " ", "\n", "  leading and trailing  ", "a\nb\n\n", "\ttab", "quote \" and 'single' \\ back", "<b>html & more</b>", "emoji 🙂 中文 ñ é", "　wide space　",
       "{{ braces }} {% if %}", "null", "<think>not really", "</think>", "line\r\nend", "\u2028separator", "a" * 300, "1e5 %s {0}", "[INST] in text [/INST]"]


def thinking(text, thought):
    return answer(text, reasoning_content=thought, thinking=thought, reasoning=thought)


def conversations():
    """(messages, tools, add_generation_prompt, other variables)"""
    plain = [
        ONE, TWO, [system("Be brief.")] + ONE, [system("Be brief.")] + TWO, [user("Hi")], [system("Only."), user("Hi")],
        TWO + [user("Third?"), answer("Yes."), user("Fourth?"), answer("No.")],
        [user("Why?"), thinking("Because.", "Let me think.\nYes.")],
        [user("Why?"), thinking("Because.", "First thought."), user("More?"), thinking("Indeed.", "Second thought.")],
        [user("Why?"), answer("<think>\nhidden\n</think>\n\nshown"), user("So?"), answer("<think>more</think>done")],
        CALL, [system("Use tools.")] + CALL, CALL + [user("Thanks"), answer("You're welcome.")],
        [user("Both?"), {"role": "assistant", "content": "Looking.", "tool_calls": [call("get_weather", {"city": "Rome"}, "call00001"), call("add", {"a": 1, "b": 2.5}, "call00002")]},
         result("sunny", "call00001"), result("3.5", "call00002", "add"), answer("Sunny, 3.5.")],
        [user("Nested"), {"role": "assistant", "tool_calls": [call("add", {"a": {"b": [1, 2, {"c": None}], "t": True}, "list": ["x", "<y>"]})]}, result("ok", name="add"), answer("Done")],
        [answer("I begin."), user("Hi"), answer("Hello")], [user("A"), user("B"), answer("C")], [user("A"), answer("B"), answer("C")],
        [user("A"), answer("B"), user("C")], [user("A"), system("Late."), answer("B")],
        [{"role": "developer", "content": "Be exact."}] + ONE,
        [user("Text call"), {"role": "assistant", "content": "", "tool_calls": [call("add", "{\"a\": 1}")]}, result("1", name="add"), answer("1")],
    ]
    out = []
    for i, messages in enumerate(plain):
        has_calls = any("tool_calls" in m for m in messages)
        out.append((messages, TOOLS if has_calls else None, i % 3 == 0 and messages[-1]["role"] == "user", {}))
    out += [([system(s), user("x" + s), answer(s + "y"), user(s), answer(s)], None, False, {}) for s in ODD]
    out += [(ONE, TOOLS, False, {}), (TWO, TOOLS, True, {}), ([user("Hi")], TOOLS, True, {}), ([user("Hi")], None, True, {}),
            ([user("Hi")], None, True, {"enable_thinking": False}), (TWO, None, False, {"enable_thinking": True}),
            ([system("s"), user("Hi")], None, True, {"date_string": "26 Jul 2024"})]
    return out
