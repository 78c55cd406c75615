#include "models/core/pass_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/core/operation.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {

int BlockProgram::producer_of(ValueId id) const {
  for (size_t i = 0; i < ops.size(); ++i)
    if (std::ranges::find(ops[i].out, id) != ops[i].out.end()) return static_cast<int>(i);
  if (const ValueId whole = value(id).whole; whole != kNone) return producer_of(whole);
  int last = kNone;
  for (size_t i = 0; i < ops.size(); ++i)
    if (std::ranges::any_of(ops[i].out,
                            [&](ValueId out) { return out != kNone && value(out).whole == id; }))
      last = static_cast<int>(i);
  return last;
}

std::vector<ValueId> BlockProgram::parts_of(ValueId id) const {
  std::vector<ValueId> parts;
  for (ValueId v = 0; v < static_cast<ValueId>(values.size()); ++v)
    if (value(v).whole == id) parts.push_back(v);
  std::ranges::sort(parts, {}, [&](ValueId v) { return value(v).first_column; });
  return parts;
}

bool BlockProgram::is_joined(ValueId id) const {
  const int producer = producer_of(id);
  return producer != kNone && std::ranges::find(op(producer).out, id) == op(producer).out.end();
}

int Op::stream(const BlockProgram& program) const {
  for (const auto* ids : {&in, &out})
    for (const ValueId id : *ids)
      if (id != kNone && program.value(id).rows.kind != RowKind::constant)
        return program.value(id).rows.stream;
  return 0;
}

const Op& BlockPlan::op_of(const BlockProgram& program, const Call& call) const {
  const auto n = static_cast<int>(program.ops.size());
  return call.op < n ? program.op(call.op) : added[static_cast<size_t>(call.op - n)];
}

namespace {

/** The share of tokens that have a label where a language model predicts what is masked. */
constexpr int64_t kLabelled_percent = 15;

bool contains(const std::vector<SavedTensor>& saved, const SavedTensor& tensor) {
  return std::ranges::find(saved, tensor) != saved.end();
}

}  // namespace

int64_t OpCase::worked_rows(ValueId value) const {
  const int64_t n = rows(value);
  const Rows& its = program.value(value).rows;
  if (its.kind == RowKind::routed) return std::max<int64_t>(1, n * its.factor / its.n_experts);
  if (its.kind != RowKind::labelled) return n;
  return std::max<int64_t>(1, n * kLabelled_percent / 100);
}

OpCase::OpCase(const BlockProgram& program_,
               const Op& op_,
               const ProgramTarget& target_,
               const BatchShape& shape_)
    : program(program_), op(op_), target(target_), shape(shape_.seen_from(op_.stream(program_))) {}

int64_t OpCase::compute_bytes(int64_t n) const {
  return round_up(n * static_cast<int64_t>(size_of(target.compute)), kTensorAlignment_bytes);
}

// --- places and calls ---

int PassPlanner::add_place(PassPlace place) {
  pass_.places.push_back(place);
  return static_cast<int>(pass_.places.size()) - 1;
}

int PassPlanner::at_port(int port, ValueId value, bool is_gradient) {
  const auto [found, is_new] = at_ports_.try_emplace(port);
  if (is_new)
    found->second = add_place(
        {.kind = PlaceKind::port, .value = value, .is_gradient = is_gradient, .port = port});
  return found->second;
}

int PassPlanner::place_of_saved(const SavedTensor& tensor) {
  const auto [found, is_new] = places_of_saved_.try_emplace(tensor);
  if (is_new) {
    auto at = std::ranges::find(saved_, tensor);
    if (at == saved_.end()) at = saved_.insert(at, tensor);
    found->second =
        add_place({.kind = PlaceKind::saved, .saved = static_cast<int>(at - saved_.begin())});
  }
  return found->second;
}

std::vector<int> PassPlanner::states(int op) {
  const Op& of = program_.op(op);
  const size_t n = of.def->states({program_, of, target_, {}}).size();
  std::vector<int> places;
  for (size_t s = 0; s < n; ++s)
    places.push_back(place_of_saved({.op = op, .state = static_cast<int>(s)}));
  return places;
}

int PassPlanner::temp_like(ValueId value) {
  const Value& v = program_.value(value);
  return add_place({.kind = PlaceKind::temp,
                    .value = value,
                    .rows = v.rows,
                    .columns = v.columns,
                    .type = v.type,
                    .by_column = v.by_column});
}

int PassPlanner::part_at(int whole_place, ValueId part) {
  const auto [found, is_new] = parts_.try_emplace({whole_place, part});
  if (is_new) {
    const Value& v = program_.value(part);
    found->second =
        add_place({.kind = PlaceKind::columns,
                   .value = part,
                   .is_gradient = pass_.places[static_cast<size_t>(whole_place)].is_gradient,
                   .columns = v.columns,
                   .whole = whole_place,
                   .first_column = v.first_column});
  }
  return found->second;
}

int PassPlanner::remake(int op) {
  const Op& of = program_.op(op);
  Call again{.op = op, .part = Part::remake, .names = of.def->values};
  for (const ValueId input : of.in)
    again.places.push_back(input == kNone ? kNone : data(input));
  if (of.def->states) again.states = states(op);
  const int y = temp_like(of.out[0]);
  again.places.push_back(y);
  add_call(std::move(again));
  return y;
}

int PassPlanner::gradient_like(ValueId value) {
  const int place = temp_like(value);
  pass_.places[static_cast<size_t>(place)].is_gradient = true;
  return place;
}

void PassPlanner::add_call(Call call) {
  const auto index = static_cast<int>(pass_.calls.size());
  for (const auto* places : {&call.places, &call.states})
    for (int p : *places) {
      for (; p != kNone; p = pass_.places[static_cast<size_t>(p)].whole) {
        PassPlace& place = pass_.places[static_cast<size_t>(p)];
        if (place.first_call == kNone) place.first_call = index;
        place.last_call = index;
      }
    }
  pass_.calls.push_back(std::move(call));
}

int PassPlanner::data(ValueId value) {
  if (const ValueId whole = program_.value(value).whole; whole != kNone)
    return part_at(data(whole), value);
  const int producer = program_.producer_of(value);
  const int port = program_.value(value).port;
  if (producer == kNone || (port != kNone && reads(program_.ports[port].backward)))
    return at_port(port, value, /*is_gradient=*/false);
  if (const auto found = made_.find(value); found != made_.end()) return found->second;
  const Op& op = program_.op(producer);
  if (!op.def->remake || op.out.back() != value) return place_of_saved({.value = value});
  return made_[value] = op.def->remake(*this, producer);
}

// --- backward ---

int BackwardPlanner::take_grad(ValueId output) {
  if (program_.value(output).whole != kNone) return take_part_of_grad(output);
  if (wholes_.contains(output)) return take_grad_of_parts(output);
  const auto found = grads_.find(output);
  if (found == grads_.end()) return kNone;
  FERRY_CHECK(n_readers_[output] == 0, "'{}' is read before its gradient is whole",
              program_.value(output).name);
  const int place = found->second;
  grads_.erase(found);
  --n_users_[place];
  return place;
}

int BackwardPlanner::take_part_of_grad(ValueId part) {
  const ValueId whole = program_.value(part).whole;
  const auto found = grads_.find(whole);
  FERRY_CHECK(found != grads_.end() && n_readers_[whole] == 0,
              "'{}' is read before its gradient is whole", program_.value(part).name);
  const int place = found->second;
  if (++n_parts_taken_[whole] == program_.parts_of(whole).size()) {
    grads_.erase(found);
    --n_users_[place];
  }
  return part_at(place, part);
}

int BackwardPlanner::take_grad_of_parts(ValueId whole) {
  const int place = wholes_.at(whole);
  for (const ValueId part : program_.parts_of(whole)) {
    const auto found = grads_.find(part);
    FERRY_CHECK(found != grads_.end() && n_readers_[part] == 0,
                "'{}' is read before its gradient is whole", program_.value(part).name);
    if (const int there = part_at(place, part); found->second != there)
      copy_grad(part, found->second, there);
    --n_users_[found->second];
    grads_.erase(found);
  }
  wholes_.erase(whole);
  return place;
}

int BackwardPlanner::new_grad_place(ValueId input) {
  const ValueId whole = program_.value(input).whole;
  if (whole == kNone) return gradient_like(input);
  const auto [found, is_new] = wholes_.try_emplace(whole);
  if (is_new) found->second = gradient_like(whole);
  return part_at(found->second, input);
}

void BackwardPlanner::copy_grad(ValueId value, int from, int to) {
  target_.gradients->copy(*this, add_op(target_.gradients->copy_of(value)), from, to);
}

int BackwardPlanner::place_of_sum(ValueId input, int part, bool is_last) {
  const int sum = grads_.at(input);
  if (is_last && leaves_grad(input)) return grad_at_port(input);
  // Only the gradient itself uses its place.
  return n_users_[sum] == 1 && sum != part ? sum : gradient_like(input);
}

void BackwardPlanner::add_later(ValueId input, int part, bool is_last) {
  const int sum = grads_.at(input), place = place_of_sum(input, part, is_last);
  additions_.push_back({input, sum, part, place});
  ++n_users_[part];
  grads_[input] = place;
  if (place != sum) ++n_users_[place];
}

BackwardPlanner::GradPlace BackwardPlanner::grad_place(ValueId input,
                                                       bool adds,
                                                       std::initializer_list<int> over) {
  if (input == kNone) return {};
  const bool is_last = --n_readers_[input] == 0;
  const auto find_free = [&] {
    const auto found = std::ranges::find_if(
        over, [&](int place) { return place != kNone && n_users_[place] == 0; });
    return found == over.end() ? kNone : *found;
  };
  GradPlace target;
  if (const auto found = grads_.find(input); found != grads_.end()) {
    if (!adds) {
      const int free = find_free();
      target.place = free == kNone ? gradient_like(input) : free;
      add_later(input, target.place, is_last);
      return target;
    }
    target.sum = found->second;
    --n_users_[target.sum];
  }
  const bool is_part = program_.value(input).whole != kNone;
  const int free = is_part ? kNone : find_free();
  if (is_last && leaves_grad(input)) {
    target.place = grad_at_port(input);
    if (free != kNone) over_[input] = free;
  } else if (target.sum != kNone && n_users_[target.sum] == 0) {
    target.place = target.sum;
  } else {
    target.place = free == kNone ? new_grad_place(input) : free;
  }
  grads_[input] = target.place;
  ++n_users_[target.place];
  return target;
}

void BackwardPlanner::pass_grad(ValueId input, int place) {
  if (input == kNone) return;
  if (program_.value(input).whole != kNone) new_grad_place(input);  // it is copied there
  const bool is_last = --n_readers_[input] == 0;
  if (grads_.contains(input)) return add_later(input, place, is_last);
  grads_[input] = place;
  ++n_users_[place];
}

int BackwardPlanner::add_op(Op op) {
  added_.push_back(std::move(op));
  return static_cast<int>(program_.ops.size() + added_.size()) - 1;
}

void BackwardPlanner::when_there(ValueId value, int gradient, std::function<void(int place)> emit) {
  if (const ValueId whole = program_.value(value).whole; whole != kNone)
    return when_there(whole, gradient,
                      [this, value, emit](int place) { emit(part_at(place, value)); });
  const int producer = program_.producer_of(value);
  const bool comes_later = producer != kNone && !made_.contains(value) &&
                           program_.op(producer).def->remakes_in_backward &&
                           program_.op(producer).out.back() == value;
  if (!comes_later) return emit(data(value));
  ++n_users_[gradient];
  waiting_[value].push_back({gradient, std::move(emit)});
}

int BackwardPlanner::by_product(ValueId output, int over) {
  if (!waiting_.contains(output)) return kNone;
  const bool is_free = over != kNone && n_users_[over] == 0;
  return products_[output] = is_free ? over : temp_like(output);
}

void BackwardPlanner::end_op() {
  for (const auto& [value, sum, part, place] : additions_) {
    target_.gradients->add(*this, add_op(target_.gradients->sum_of(value)), sum, part, place);
    --n_users_[part];
    if (place != sum) --n_users_[sum];
  }
  additions_.clear();
  for (const auto& [output, place] : products_) {
    made_[output] = place;
    for (const Waiting& waiting : waiting_[output]) {
      waiting.emit(place);
      --n_users_[waiting.gradient];
    }
    waiting_.erase(output);
  }
  products_.clear();
}

void BackwardPlanner::begin_at_ports() {
  for (ValueId v = 0; v < static_cast<ValueId>(program_.values.size()); ++v) {
    const Value& value = program_.value(v);
    const bool leaves = program_.is_read_from_port(v);
    const int port = leaves ? value.grad_before : value.grad_port;
    if (port == kNone) continue;
    const int place = grads_[v] = at_port(port, v, /*is_gradient=*/true);
    ++n_users_[place];
    // Other blocks read the gradient of a running sum, too: it is not written over.
    if (!leaves && program_.ports[value.port].forward == PortUse::changes) ++n_users_[place];
  }
}

void BackwardPlanner::run() {
  for (const Op& op : program_.ops)
    for (ValueId input : op.in)
      if (input != kNone) ++n_readers_[input];
  begin_at_ports();
  for (op_ = static_cast<int>(program_.ops.size()) - 1; op_ >= 0; --op_) {
    program_.op(op_).def->plan_backward(*this, program_.op(op_));
    end_op();
  }
  FERRY_CHECK(waiting_.empty(), "a value is never made again");
  while (!wholes_.empty()) {  // of values that come from other blocks
    const ValueId whole = wholes_.begin()->first;
    ++n_users_[grads_[whole] = take_grad_of_parts(whole)];
  }
  for (ValueId v = 0; v < static_cast<ValueId>(program_.values.size()); ++v)
    if (leaves_grad(v)) end_at_port(v);
  write_straight_to_ports();
}

void BackwardPlanner::end_at_port(ValueId value) {
  const auto found = grads_.find(value);
  FERRY_CHECK(found != grads_.end(), "nothing gives '{}' a gradient", program_.value(value).name);
  const int there = grad_at_port(value);
  if (found->second == there) return;
  // The last part was passed on: it lies where it came from.
  copy_grad(value, found->second, there);
}

void BackwardPlanner::write_straight_to_ports() {
  for (const auto& [value, over] : over_) {
    PassPlace& temp = pass_.places[static_cast<size_t>(over)];
    if (temp.kind != PlaceKind::temp) continue;
    for (Call& call : pass_.calls)
      std::ranges::replace(call.places, over, grad_at_port(value));
    for (PassPlace& place : pass_.places)
      if (place.whole == over) place.whole = grad_at_port(value);
    temp.first_call = temp.last_call = kNone;
  }
}

namespace {

// --- forward, and the activations that selective recomputation makes again ---

/** Values whose memory is one: an operation works in place where nobody else needs its input. */
class SharedMemory {
 public:
  SharedMemory(const BlockProgram& program, const std::vector<SavedTensor>& saved) {
    std::map<ValueId, int> n_readers;
    for (const Op& op : program.ops)
      for (ValueId input : op.in)
        ++n_readers[input];
    for (const Op& op : program.ops)
      if (op.def->in_place) {
        const ValueId from = op.in[0], to = op.out[0];
        if (from == kNone || to == kNone || program.is_read_from_port(from)) continue;
        const Value &a = program.value(from), &b = program.value(to);
        const bool is_in_parts = a.whole != kNone || b.whole != kNone ||
                                 !program.parts_of(from).empty() || !program.parts_of(to).empty();
        if (a.port != kNone || is_in_parts) continue;
        const bool is_alike = a.rows == b.rows && a.columns == b.columns && a.type == b.type;
        if (is_alike && n_readers[from] == 1 && !contains(saved, {.value = from}))
          same_.try_emplace(from, to);
      }
  }
  /** The value that stands for all that share its memory: the last one. */
  ValueId of(ValueId value) const {
    for (auto found = same_.find(value); found != same_.end(); found = same_.find(value))
      value = found->second;
    return value;
  }

 private:
  std::map<ValueId, ValueId> same_;
};

class ForwardPlanner : public PassPlanner {
 public:
  ForwardPlanner(const BlockProgram& program,
                 const ProgramTarget& target,
                 std::vector<SavedTensor>& saved,
                 PassPlan& pass)
      : PassPlanner(program, target, saved, pass), shared_(program, saved) {}

  void forward() {
    for (size_t i = 0; i < program_.ops.size(); ++i)
      run(static_cast<int>(i), [this](ValueId value) { return place_of(value); });
  }
  /** Makes the values again that are marked so, each from what is kept. */
  void recompute() {
    for (const SavedTensor& tensor : saved_)
      if (tensor.value != kNone && program_.value(tensor.value).recomputed) make(tensor.value);
  }

 private:
  template <class PlaceOf>
  void run(int index, PlaceOf&& place_of_input) {
    const Op& op = program_.op(index);
    std::vector<int> places;
    for (ValueId value : op.in)
      places.push_back(value == kNone ? kNone : place_of_input(value));
    for (ValueId value : op.out)
      places.push_back(value == kNone ? kNone : place_of(value));
    Call call{.op = index, .part = Part::forward, .names = op.def->values, .places = places};
    if (op.def->states) call.states = states(index);
    add_call(std::move(call));
  }

  int place_of(ValueId value) {
    if (const ValueId whole = program_.value(value).whole; whole != kNone)
      return part_at(place_of(whole), value);
    if (!program_.is_read_from_port(value)) value = shared_.of(value);
    if (contains(saved_, {.value = value})) return place_of_saved({.value = value});
    if (const int port = program_.value(value).port; port != kNone)
      return at_port(port, value, /*is_gradient=*/false);
    const auto [found, is_new] = temps_.try_emplace(value);
    if (is_new) found->second = temp_like(value);
    return found->second;
  }

  int make(ValueId value) {
    if (const ValueId whole = program_.value(value).whole; whole != kNone)
      return part_at(make(whole), value);
    const int producer = program_.producer_of(value);
    const bool is_kept = contains(saved_, {.value = value}) && !program_.value(value).recomputed;
    if (producer == kNone || is_kept || made_.contains(value)) return data(value);
    if (program_.op(producer).def->remake) return data(value);
    const auto run_again = [&](int op) {
      run(op, [this](ValueId input) { return make(input); });
      for (ValueId out : program_.op(op).out)
        if (out != kNone) made_[out] = place_of(out);
    };
    if (!program_.is_joined(value)) {
      run_again(producer);
      return made_[value];
    }
    for (const ValueId part : program_.parts_of(value))
      run_again(program_.producer_of(part));
    return made_[value] = place_of(value);
  }

  SharedMemory shared_;
  std::map<ValueId, int> temps_;
};

/** Puts saved tensors into the order in which the forward writes them, states last. */
void sort_saved(const BlockProgram& program, BlockPlan& plan) {
  const std::vector<SavedTensor> before = plan.saved;
  std::ranges::stable_sort(plan.saved, {}, [&](const SavedTensor& tensor) {
    const bool is_state = tensor.value == kNone;
    return std::tuple(is_state, is_state ? tensor.op : program.producer_of(tensor.value),
                      is_state ? tensor.state : tensor.value);
  });
  for (PassPlace& place : plan.backward.places)
    if (place.kind == PlaceKind::saved) {
      const auto at = std::ranges::find(plan.saved, before[static_cast<size_t>(place.saved)]);
      place.saved = static_cast<int>(at - plan.saved.begin());
    }
}

}  // namespace

BlockPlan plan_passes(const BlockProgram& program, const ProgramTarget& target) {
  BlockPlan plan;
  BackwardPlanner(program, target, plan.saved, plan.backward, plan.added).run();
  for (const SavedTensor& saved : plan.saved) {
    const int port = saved.value == kNone ? kNone : program.value(saved.value).port;
    FERRY_CHECK(port == kNone || !writes(program.ports[port].forward),
                "the block leaves '{}', which its own backward reads: leave a copy",
                program.value(saved.value).name);
  }
  sort_saved(program, plan);
  ForwardPlanner(program, target, plan.saved, plan.forward).forward();
  ForwardPlanner(program, target, plan.saved, plan.recompute).recompute();
  return plan;
}

PassScratch lay_out(const PassPlan& pass,
                    const BlockPlan& plan,
                    const BlockProgram& program,
                    const ProgramTarget& target,
                    const BatchShape& shape) {
  struct Used {
    int64_t begin, end;
    int last_call;
  };
  PassScratch out;
  out.offsets.resize(pass.places.size());
  std::vector<Used> used;
  for (size_t c = 0; c < pass.calls.size(); ++c) {
    const auto index = static_cast<int>(c);
    std::erase_if(used, [&](const Used& u) { return u.last_call < index; });
    for (size_t p = 0; p < pass.places.size(); ++p) {
      const PassPlace& place = pass.places[p];
      if (place.kind != PlaceKind::temp || place.first_call != index) continue;
      const int64_t n_bytes = round_up(
          rows_of(place.rows, shape) * place.columns * static_cast<int64_t>(size_of(place.type)),
          kTensorAlignment_bytes);
      std::ranges::sort(used, {}, &Used::begin);
      int64_t begin = 0;
      for (const Used& u : used)
        if (u.begin < begin + n_bytes) begin = std::max(begin, u.end);
      out.offsets[p] = begin;
      used.push_back({begin, begin + n_bytes, place.last_call});
      out.n_bytes = std::max(out.n_bytes, begin + n_bytes);
    }
    int64_t top = 0;
    for (const Used& u : used)
      top = std::max(top, u.end);
    out.call_offsets.push_back(top);
    const Op& op = plan.op_of(program, pass.calls[c]);
    if (op.def->scratch) {
      const ScratchNeed need = op.def->scratch({program, op, target, shape}, pass.calls[c].part);
      out.n_bytes = std::max(out.n_bytes, top + need.forward_bytes);
      out.library_bytes = std::max(out.library_bytes, need.library_bytes);
    }
  }
  return out;
}

}  // namespace ferry
