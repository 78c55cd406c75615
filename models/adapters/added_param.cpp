#include "models/adapters/added_param.h"

#include <memory>
#include <utility>

namespace ferry {

ParamId add_param(ModelTable& model, int block, BlockProgram& program, AddedParam added) {
  BlockTable& table = model.blocks[block];
  const auto n_own = static_cast<ParamId>(table.params.size());
  for (Op& op : program.ops)
    for (ParamId& param : op.params)
      if (param >= n_own) ++param;
  const int64_t rows = added.shape[0];
  const ParamId id = table.add(std::move(added.name), added.shape, /*decay=*/true, Init::rows);
  table.params[id].start_rows = std::make_shared<const RowsInit>(std::move(added.start));
  table.arrange();
  HfEntry entry;
  entry.hf_name = std::move(added.hf_name);
  entry.block = block;
  entry.param = id;
  entry.rows = rows;
  entry.hf_shape = std::move(added.shape);
  entry.optional = true;
  entry.is_delta = added.is_delta;
  model.hf_names.push_back(std::move(entry));
  return id;
}

}  // namespace ferry
