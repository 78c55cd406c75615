#pragma once
// The element-wise, norm, embedding and row operations.

#include "models/block.h"
#include "models/ops/activation/activation.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/embedding/embedding.h"
#include "models/ops/gate/gate.h"
#include "models/ops/head_norm/head_norm.h"
#include "models/ops/norm/norm.h"
#include "models/ops/norm/norm_params.h"
#include "models/ops/rms_norm/rms_norm.h"
#include "models/ops/rotary/rotary.h"
#include "models/ops/rows/rows.h"
