#include "offload/store/stored_states.h"

namespace ferry {

StepShape shape_of(const StoredStates& states) {
  StepShape shape;
  shape.compute = states.compute;
  shape.optim = states.optim;
  shape.split_master = states.split_master;
  shape.state_piece_elements = states.piece_elements;
  for (const StoredStates::Block& block : states.blocks) {
    const auto number = static_cast<size_t>(block.number);
    if (shape.blocks.size() <= number) shape.blocks.resize(number + 1);
    shape.blocks[number].name = block.name;
    shape.blocks[number].n_elements = block.n_elements;
    shape.blocks[number].n_trained_elements = block.n_trained_elements;
    shape.blocks[number].place = {block.has_weights ? Place::nvme : Place::host, Place::nvme,
                                  Place::host};
  }
  return shape;
}

}  // namespace ferry
