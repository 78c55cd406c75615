#pragma once
// Puts nodes that do as Python does in the place of more lenient ones of the engine: members,
// operators, filters, loops, macros and printing. Private to src/chat/jinja.

#include "jinja/runtime.h"

namespace ferry::chat {

/** Changes the program's nodes; nothing is run. */
void make_pythonic(jinja::program& program);

/** The text of all that a program puts out. */
std::string run(const jinja::program& program, jinja::context& context);

}  // namespace ferry::chat
