#pragma once
// The planner's answer beside Qt, which takes `slots` for a word of its own where the plan has a
// tag of that name. Include this in place of the plan's headers.

#ifndef Q_MOC_RUN
#pragma push_macro("slots")
#undef slots
#include "src/plan/cost/rates.h"
#include "src/service/plan/plan_answer.h"
#pragma pop_macro("slots")
#endif
