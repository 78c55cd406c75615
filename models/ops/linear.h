#pragma once
// Fully connected layers: their folder has them.

#include "models/ops/linear/linear.h"
