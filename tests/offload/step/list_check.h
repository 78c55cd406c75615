#pragma once
// Searches lists of actions for hazards. Independent of the maker of lists and of the executor: it
// follows what the bytes hold that each action says it reads and writes, and knows from the verb
// and the shape what they must hold, and that none is left out; from queues, `after` edges and the
// main thread's one wait a step it builds what happens before what. A run of lists is free of
// hazards if every two actions that touch one byte, one of them writing, are ordered, and in list
// order each reads what it should.

#include <string>
#include <vector>

#include "offload/step/pager.h"

namespace ferry::test {

inline StepList training_list(const StepShape& shape,
                              int n_micro,
                              UpdateOrder order = UpdateOrder::after_decision,
                              bool each_decides = false) {
  return make_training_list(shape, make_layout(shape), n_micro, order, each_decides);
}
inline StepList evaluation_list(const StepShape& shape) {
  return make_evaluation_list(shape, make_layout(shape));
}

/** Lists run one after the other; `training` false: an evaluation's. */
struct ListRun {
  const StepList* list;
  int n_micro;
  bool training;
  UpdateOrder order = UpdateOrder::after_decision;
  /** Blocks decide for themselves: always where they are updated as gradients arrive. */
  bool each_decides = order == UpdateOrder::as_grads_arrive;
};

/** One sentence a hazard; empty: none. */
std::vector<std::string> find_hazards(const StepShape& shape, const std::vector<ListRun>& runs);

/** The same verdict by walking through every state the queues can be in: true if two conflicting
 * actions can happen in the wrong order. For small lists. `n_states`, if given, receives how many
 * states there were. */
bool can_go_wrong(const StepShape& shape,
                  const std::vector<ListRun>& runs,
                  size_t* n_states = nullptr);

}  // namespace ferry::test
