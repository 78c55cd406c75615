#pragma once
// What the engine's JSON takes from llama.cpp's header of this name. Seen by the engine alone.

#include <cstdlib>

#define GGML_ASSERT(condition) ((condition) ? void(0) : std::abort())
