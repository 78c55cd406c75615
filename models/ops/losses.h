#pragma once
// The losses of the heads.

#include "models/block.h"
#include "models/ops/cross_entropy/cross_entropy.h"
#include "models/ops/cross_entropy/logits_state.h"
#include "models/ops/label_loss/label_loss.h"
#include "models/ops/span_loss/span_loss.h"
#include "models/ops/vocabulary_loss/vocabulary_loss.h"
