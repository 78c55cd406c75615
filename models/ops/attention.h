#pragma once
// Attention: its folder has it.

#include "models/ops/attention/attention.h"
