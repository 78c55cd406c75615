#pragma once
// The engine's JSON takes this from llama.cpp's header of the same name. The engine alone sees it.

#include <cstdlib>

#define GGML_ASSERT(condition) ((condition) ? void(0) : std::abort())
