#pragma once
// Puts nodes that do as Python does in the place of those of the engine that are more lenient:
// members, operators, filters, loops, macros and what is printed. Private to src/chat/jinja.

#include "jinja/runtime.h"

namespace ferry::chat {

/** Throws raised_exception where the template needs what neither has. */
void make_pythonic(jinja::program& program);

/** The text of all that a program puts out. */
std::string run(const jinja::program& program, jinja::context& context);

}  // namespace ferry::chat
