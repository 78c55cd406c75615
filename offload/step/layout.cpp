#include "offload/step/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "offload/step/ring_size.h"
#include "offload/step/state_pieces.h"
#include "offload/step/values/value_homes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr auto kMaster_bytes = static_cast<int64_t>(sizeof(float));

/** Words of a region's name, put together where it is listed. */
struct Name {
  std::string_view first, second;
  int number = -1;

  std::string text() const {
    std::string text(first);
    if (!second.empty()) text.append(" ").append(second);
    if (number >= 0) text.append(" ").append(std::to_string(number));
    return text;
  }
};

/** Goes through the regions of a shape; lists them, or does no more than add up their bytes. */
template <bool kLists>
class LayoutMaker {
 public:
  explicit LayoutMaker(const StepShape& shape) : shape_(shape) {}

  void go() {
    decide();
    drive_slots();  // first in their place, as a drive wants addresses
    segments(/*are_copied=*/true);
    slots();
    saved();
    values();
    out_.scratch = add(Tag::scratch, Place::device, {"scratch"}, shape_.scratch_bytes);
    out_.library = add(Tag::library, Place::device, {"library"}, shape_.library_bytes);
    out_.generation = add(Tag::cache, Place::device, {"generation"}, shape_.generation_bytes);
    add_each(out_.batches, shape_.n_micro_max, Tag::batch, Place::device, "batch",
             shape_.batch_bytes);
    add_each(out_.batches_on_host, shape_.n_micro_max, Tag::batch, Place::host, "batch",
             shape_.batch_bytes);
    out_.step_sums = add(Tag::batch, Place::device, {"step sums"}, step_sums_bytes(shape_));
    out_.step_sums_on_host = add(Tag::batch, Place::host, {"step sums"}, step_sums_bytes(shape_));
    if (shape_.trains)
      out_.arrived_sums =
          add(Tag::batch, Place::host, {"arrived sums"},
              sum_slot(shape_, shape_.n_blocks()) * static_cast<int64_t>(sizeof(double)));
    // The last of the copied regions: where not all can be pinned, checkpoints wait and no step.
    if (shape_.trains && is_checkpoint_copied_) save_buffer();
    out_.copied_on_host.n_bytes = host_end() - out_.copied_on_host.offset;
    if (shape_.trains && !is_checkpoint_copied_) save_buffer();
    segments(/*are_copied=*/false);
  }
  Layout take() { return std::move(out_); }
  LayoutBytes bytes() const { return {out_.n_bytes, save_buffer_bytes_}; }

 private:
  RegionId add(Tag tag, Place place, const Name& name, int64_t n_bytes) {
    if (n_bytes <= 0) return -1;
    int64_t& end = out_.n_bytes[place];
    n_bytes = round_up(n_bytes, kTensorAlignment_bytes);
    if constexpr (kLists) out_.regions.push_back({tag, place, name.text(), end, n_bytes});
    end += n_bytes;
    return static_cast<RegionId>(out_.regions.size()) - 1;
  }
  /** n of the same size behind each other, numbered. */
  void add_each(std::vector<RegionId>& ids,
                int n,
                Tag tag,
                Place place,
                std::string_view name,
                int64_t n_bytes) {
    if constexpr (kLists)
      for (int i = 0; i < n; ++i)
        ids.push_back(add(tag, place, {name, {}, i}, n_bytes));
    else
      count(n, place, n_bytes);
  }
  void count(int n, Place place, int64_t n_bytes) {
    if (n_bytes > 0) out_.n_bytes[place] += n * round_up(n_bytes, kTensorAlignment_bytes);
  }

  int64_t host_end() const { return out_.n_bytes[Place::host]; }

  const BlockShape& block(int b) const { return shape_.blocks[b]; }
  const BlockLayout& decided(int b) const { return out_.block(b); }

  void decide() {
    out_.blocks.resize(shape_.blocks.size());
    for (int user = 0; user < shape_.n_blocks(); ++user)
      for (int i = 0; i < static_cast<int>(block(user).borrowed.size()); ++i)
        if (shape_.borrowed_tensor(user, i).trainable) {
          const int owner = block(user).borrowed[i].block;
          for (int b : {user, owner})
            out_.blocks[b].is_tied = true;
          out_.blocks[user].has_grads = shape_.trains;
        }
    out_.first_backward = shape_.n_blocks();
    for (int b = shape_.n_blocks(); b-- > 0;) {
      BlockLayout& out = out_.blocks[b];
      out.is_trained = shape_.is_trained(b);
      out.reads_weights = shape_.runs(b) && block(b).place.weights == Place::nvme;
      // A block without weights has nothing to bring into a slot.
      out.n_slot_elements = shape_.n_slot_elements(b);
      out.streams =
          shape_.runs(b) && out.n_slot_elements > 0 &&
          (block(b).place.weights == Place::host || out.reads_weights || is_gathered_each_pass(b));
      out.updates_on_host = shape_.updates_in(b) == Place::host;
      out.n_state_pieces = shape_.n_state_pieces(b);
      out.writes_grads_to_drive = shape_.grads_on_drive(b);
      out.grads_on_host = block(b).place.grads == Place::host;
      out.grads_reach_host = out.grads_on_host || out.updates_on_host;
      out.sends_weights = out.is_trained && shape_.runs(b) && has_states_apart(b);
      FERRY_CHECK(can_be_placed(b),
                  "{} cannot have weights on {}, states on {} and gradients on {}", block(b).name,
                  name_of(block(b).place.weights), name_of(block(b).place.states),
                  name_of(block(b).place.grads));
      out.has_grads |= out.is_trained;
      if (out.has_grads) out_.first_backward = b;
      out.has_grads = out.has_grads && shape_.runs(b);
      FERRY_CHECK(!out.writes_grads_to_drive || shape_.may_write_grads(b),
                  "{}'s gradients are added to, and would wait on a drive", block(b).name);
      const bool is_fp32 = shape_.compute == DType::f32;
      const bool sums = out.has_grads && (shape_.sums_grads() || (out.is_tied && !is_fp32));
      // Vertical: a block's micro-batches follow each other, and their sum stays on the device
      // until it is whole. So does the sum of several ranks' where each has one micro-batch a step.
      const bool arrives_in_rounds = shape_.order == AccumulationOrder::horizontal &&
                                     (!shape_.cuts_blocks() || shape_.n_micro_max > 1);
      out.sums_on_host = sums && out.grads_on_host && arrives_in_rounds;
      out.sums_on_device = sums && !out.sums_on_host;
      out.grad_type = is_fp32 || shape_.sums_grads() || out.is_tied ? DType::f32 : shape_.compute;
      out.n_grad_elements = shape_.n_grad_elements(b);
      FERRY_CHECK(!shape_.cuts_blocks() ||
                      (!out.sends_weights && !out.reads_weights && !out.writes_grads_to_drive),
                  "{} cannot live there where there are several ranks", block(b).name);
    }
    for (int b = out_.first_backward; b < shape_.n_blocks(); ++b)
      if (block(b).saved_bytes > 0 &&
          (block(b).activations != Activations::selective || block(b).saved_recomputed_bytes > 0))
        out_.blocks[b].activations = block(b).activations;
  }

  bool is_gathered_each_pass(int b) const {
    return block(b).gathers_each_pass && shape_.cuts_blocks() && shape_.is_trained(b) &&
           block(b).place == BlockPlacement(Place::device);
  }
  /** The device updates weights of the host. */
  bool has_states_apart(int b) const {
    return block(b).place.weights == Place::host && block(b).place.states == Place::device;
  }
  bool can_be_placed(int b) const {
    if (!shape_.runs(b)) return true;
    const BlockPlacement& place = block(b).place;
    const BlockLayout& out = decided(b);
    if (out.writes_grads_to_drive && out.n_state_pieces == 0) return false;
    if (has_states_apart(b)) return true;
    if (out.reads_weights &&
        (!block(b).borrowed.empty() || (out.is_trained && out.n_state_pieces == 0)))
      return false;
    return place.updates() == place.grads && (!out.streams || out.updates_on_host ||
                                              shape_.computes_on_host || is_gathered_each_pass(b));
  }

  /** The place of a block's segment. Weights that are updated lie where the update writes them or
   * sends them to; an untrained block has them where passes read them. */
  Place home_of(int b, Segment s) const {
    if (s == Segment::grads) return block(b).place.grads;
    const bool is_weights =
        s == Segment::weights || (s == Segment::master && shape_.weights_are_master());
    if (!is_weights) return block(b).place.states;
    if (!decided(b).is_trained || decided(b).reads_weights || decided(b).sends_weights)
      return block(b).place.weights;
    return shape_.updates_in(b);
  }
  /** The device keeps the block's weights, and its own or some that it borrows are updated on the
   * host. */
  bool has_own_slot(int b) const {
    if (decided(b).streams || !shape_.runs(b)) return false;
    const auto is_elsewhere = [&](int owner) {
      return home_of(owner, Segment::weights) != Place::device ||
             (shape_.cuts_blocks() && decided(owner).is_trained);
    };
    return is_elsewhere(b) ||
           std::ranges::any_of(block(b).borrowed, is_elsewhere, &BorrowedExtent::block);
  }

  /** Memory that a drive reads and writes. */
  void drive_slots() {
    const int64_t n_bytes = state_slot_bytes(shape_);
    if (n_bytes == 0) return;
    const Place place = shape_.drive_memory();
    int64_t weights = 0, grads = 0, sent_grads = 0;
    bool has_states = false;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      FERRY_CHECK(decided(b).n_state_pieces == 0 || shape_.computes_on_host ||
                      place == shape_.updates_in(b),
                  "{} has states on a drive that are updated on {}", block(b).name,
                  name_of(shape_.updates_in(b)));
      has_states |= decided(b).n_state_pieces > 0;
      weights = std::max(weights, drive_weights_bytes(shape_, b));
      grads = std::max(grads, drive_grads_bytes(shape_, b));
      if (decided(b).grads_on_host && decided(b).has_grads)
        sent_grads = std::max(sent_grads, decided(b).n_grad_elements * kMaster_bytes);
    }
    if (has_states)
      add_each(out_.state_slots, shape_.n_state_slots, Tag::staging, place, "state slot", n_bytes);
    out_.state_window = add(Tag::staging, place, {"state window"}, state_record_bytes(shape_));
    if (!shape_.computes_on_host) out_.copied_on_host.offset = host_end();
    has_grad_slots_ = grads > 0 && shape_.computes_on_host;
    if (has_grad_slots_)
      add_each(out_.grad_slots, shape_.n_grad_slots, Tag::slots, place, "gradient slot",
               round_up(std::max(grads, sent_grads), kDrivePage_bytes));
    else if (grads > 0)
      add_each(out_.grad_windows, shape_.n_grad_windows, Tag::staging, place, "gradient window",
               grad_piece_bytes(shape_));
    if (weights == 0) return;
    if (shape_.computes_on_host)
      weight_slots(weights);
    else
      add_each(out_.weight_windows, shape_.n_weight_windows, Tag::staging, Place::host,
               "weight window", weights);
  }
  /** Slots of so many bytes at least. */
  void weight_slots(int64_t n_bytes) {
    if (std::exchange(has_weight_slots_, true)) return;
    const bool are_read_to = n_bytes > 0;
    for (int b = 0; b < shape_.n_blocks(); ++b)
      if (decided(b).streams)
        n_bytes = std::max(
            n_bytes, decided(b).n_slot_elements * static_cast<int64_t>(size_of(shape_.compute)));
    if (are_read_to) n_bytes = round_up(n_bytes, kDrivePage_bytes);
    if (n_bytes > 0)
      add_each(out_.weight_slots, shape_.n_weight_slots, Tag::slots, Place::device, "weight slot",
               n_bytes);
  }

  /** Calls with each trained tensor that the block borrows of one whose gradients lie in the other
   * memory. */
  template <class Each>
  void for_borrowed_across(int user, Each&& each) const {
    for (int i = 0; i < static_cast<int>(block(user).borrowed.size()); ++i) {
      const TensorExtent& tensor = shape_.borrowed_tensor(user, i);
      const int owner = block(user).borrowed[i].block;
      if (tensor.trainable && decided(user).grads_on_host != decided(owner).grads_on_host)
        each(tensor);
    }
  }

  /** False of segments that the CPU alone reads and writes: states that it updates, and sums of
   * gradients that arrive elsewhere. */
  bool is_copied(int b, Segment s) const {
    if (shape_.computes_on_host || home_of(b, s) != Place::host) return true;
    switch (s) {
      case Segment::weights:
        return true;
      case Segment::grads: {
        bool is_lent = false;
        for_borrowed_across(b, [&](const TensorExtent&) { is_lent = true; });
        return !decided(b).sums_on_host || decided(b).sends_weights || is_lent;
      }
      case Segment::master:
        return shape_.weights_are_master();
      default:
        return false;
    }
  }

  /** Those that are an end of copies, or the others. */
  void segments(bool are_copied) {
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      auto& ids = out_.blocks[b].segments;
      const auto place_segment = [&](Segment s) {
        if (is_copied(b, s) != are_copied) return;
        const auto tag = static_cast<Tag>(s);
        const Place home = home_of(b, s);
        const int64_t n_bytes = segment_bytes(shape_, b, s);
        ids[static_cast<size_t>(s)] =
            add(tag, home, {block(b).name, name_of(s, shape_.optim)}, n_bytes);
        is_checkpoint_copied_ |= n_bytes > 0 && home == Place::device;
      };
      if (shape_.trains) place_segment(Segment::master);
      if (!shape_.trains || !shape_.weights_are_master()) place_segment(Segment::weights);
      if (are_copied && has_own_slot(b))
        out_.blocks[b].own_slot =
            add(Tag::weights, Place::device, {block(b).name, "weights to compute with"},
                decided(b).n_slot_elements * static_cast<int64_t>(size_of(shape_.compute)));
      if (decided(b).has_grads) place_segment(Segment::grads);
      if (decided(b).is_trained)
        for (const Segment s : state_segments(shape_.optim))
          place_segment(s);
      if (shape_.trains && shape_.weights_are_master())
        ids[static_cast<size_t>(Segment::weights)] = ids[static_cast<size_t>(Segment::master)];
    }
  }

  void slots() {
    const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
    int64_t grads_host = 0, staged = 0, temp = 0, parts = 0, part_sums = 0;
    const bool vertical = shape_.order == AccumulationOrder::vertical;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      const BlockLayout& of = decided(b);
      const int64_t n = of.n_grad_elements;
      if (of.has_grads && shape_.cuts_blocks()) {
        const auto exchanged = static_cast<int64_t>(size_of(shape_.exchanged_type()));
        grads_host = std::max(grads_host, n * exchanged);
        if (shape_.exchanges_sums()) temp = std::max(temp, n * compute_bytes);
        const int64_t all_parts = shape_.ranks.n_replicas() *
                                  shape_.n_part_grad_elements(b, shape_.ranks.rank) * exchanged;
        parts = std::max(parts, all_parts);
        if (of.sums_on_host) staged = std::max(staged, all_parts);
        if (of.grads_on_host && !of.sums_on_host)
          part_sums = std::max(part_sums, segment_bytes(shape_, b, Segment::grads));
        continue;
      }
      if (of.grads_reach_host && of.has_grads) {
        const auto sum_bytes = static_cast<int64_t>(size_of(of.grad_type));
        // Sums come back where the device updates the block.
        const bool holds_sum = vertical || of.sends_weights;
        grads_host = std::max(grads_host, n * (holds_sum ? sum_bytes : compute_bytes));
        if (of.sums_on_host) staged = std::max(staged, n * compute_bytes);
      }
      if (of.sums_on_device) temp = std::max(temp, n * compute_bytes);
    }
    weight_slots(0);
    if (!shape_.trains) return;
    if (grads_host > 0 && !has_grad_slots_)
      add_each(out_.grad_slots, shape_.n_grad_slots, Tag::slots, Place::device, "gradient slot",
               grads_host);
    if (staged > 0)
      add_each(out_.grad_staging, shape_.n_grad_slots, Tag::staging, Place::host,
               "gradient staging", staged);
    add_each(out_.grad_parts, parts > 0 ? shape_.n_grad_slots : 0, Tag::slots, Place::device,
             "gradient parts", parts);
    add_each(out_.grad_sums, part_sums > 0 ? shape_.n_grad_slots : 0, Tag::slots, Place::device,
             "gradient sum", part_sums);
    out_.grad_temp = add(Tag::slots, Place::device, {"gradient of one micro-batch"}, temp);
    int64_t on_device = 0, on_host = 0;
    for (int user = 0; user < shape_.n_blocks(); ++user)
      for_borrowed_across(user, [&](const TensorExtent& tensor) {
        if (!shape_.runs(user)) return;
        int64_t& most = decided(user).grads_on_host ? on_device : on_host;
        most = std::max(most, tensor.n_elements * kMaster_bytes);
      });
    out_.borrowed_on_device =
        add(Tag::slots, Place::device, {"gradient of a borrowed tensor"}, on_device);
    out_.borrowed_on_host =
        add(Tag::staging, Place::host, {"gradient of a borrowed tensor"}, on_host);
  }

  void saved() {
    const auto n = static_cast<size_t>(shape_.n_blocks() * shape_.n_live());
    if constexpr (kLists) {
      out_.saved.assign(n, -1);
      out_.saved_on_host.assign(n, -1);
    }
    int64_t recomputed = 0, on_host = 0;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      if (!shape_.runs(b)) continue;
      // Blocks without a backward pass write their activations to one region, and nobody reads
      // them.
      if (b < out_.first_backward || block(b).activations == Activations::recompute) {
        recomputed = std::max(recomputed, block(b).saved_bytes);
        continue;
      }
      const int64_t kept = block(b).saved_kept_bytes();
      recomputed = std::max(recomputed, block(b).saved_bytes - kept);
      const bool host = block(b).activations == Activations::host;
      if (host) on_host = std::max(on_host, block(b).saved_bytes);
      const Place place = host ? Place::host : Place::device;
      if constexpr (kLists)
        for (int live = 0; live < shape_.n_live(); ++live)
          (host ? out_.saved_on_host
                : out_.saved)[static_cast<size_t>(b * shape_.n_live() + live)] =
              add(Tag::saved, place, {block(b).name, "saved"}, kept);
      else
        count(shape_.n_live(), place, kept);
    }
    out_.saved_recomputed = add(Tag::saved, Place::device, {"saved, made again"}, recomputed);
    if (on_host > 0)
      add_each(out_.saved_slots, shape_.n_saved_slots, Tag::saved, Place::device, "saved slot",
               on_host);
  }

  void values() {
    const ValueHomes homes = value_homes(shape_);
    const int n_live = shape_.n_live();
    const std::vector<bool> is_used = values_used();
    if constexpr (!kLists) {
      for (const SharedHome& shared : homes.shared)
        count(n_live, Place::device, shared.n_bytes);
      for (size_t v = 0; v < homes.of.size(); ++v) {
        const ValueHome& home = homes.of[v];
        if (!is_used[v]) continue;
        const int64_t n_bytes = shape_.values[v].n_bytes;
        count(home.kind == ValueHome::Kind::own ? n_live : 0, Place::device, n_bytes);
        count(home.has_host ? n_live : 0, Place::host, n_bytes);
      }
    } else {
      list_values(homes, is_used);
    }
    if (homes.slot_bytes > 0)
      add_each(out_.value_slots, shape_.n_layer_input_slots, Tag::saved, Place::device,
               "layer-input slot", homes.slot_bytes);
  }

  /** By value: a pass of this rank uses it. */
  std::vector<bool> values_used() const {
    std::vector<bool> is_used(shape_.values.size(), !shape_.deals_blocks());
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (const Port& port : block(b).ports)
        if (shape_.runs(b)) is_used[static_cast<size_t>(port.value)] = true;
    return is_used;
  }

  void list_values(const ValueHomes& homes, const std::vector<bool>& is_used) {
    const int n_live = shape_.n_live();
    std::vector<RegionId> shared;  // [shared * n_live + live]
    for (const SharedHome& home : homes.shared)
      for (int live = 0; live < n_live; ++live)
        shared.push_back(
            home.has_grads
                ? add(Tag::scratch, Place::device,
                      {"gradient between blocks", {}, static_cast<int>(shared.size())},
                      home.n_bytes)
                : add(Tag::saved, Place::device, {"output that passes by"}, home.n_bytes));
    const auto shared_at = [&](int home, int live) {
      return home < 0 ? -1 : shared[static_cast<size_t>(home * n_live + live)];
    };
    for (size_t v = 0; v < homes.of.size(); ++v) {
      const ValueHome& home = homes.of[v];
      ValueShape value = shape_.values[v];
      if (!is_used[v]) value.n_bytes = 0;
      for (int live = 0; live < n_live; ++live) {
        out_.values.push_back(home.kind == ValueHome::Kind::own
                                  ? add(Tag::saved, Place::device, {value.name}, value.n_bytes)
                                  : shared_at(home.shared, live));
        out_.values_on_host.push_back(
            home.has_host ? add(Tag::saved, Place::host, {value.name}, value.n_bytes) : -1);
        out_.discarded.push_back(shared_at(home.discarded, live));
      }
    }
  }

  /** The bytes of states that a checkpoint takes of a block. */
  int64_t saved_states_bytes(int b) const {
    // Each segment of a block is a run in a file, which begins and ends within a slot of the
    // buffer.
    constexpr int64_t kRun_bytes = 512 << 10;
    int64_t n_bytes = 0;
    for (const Segment s : saved_segments(shape_.optim)) {
      if (s != Segment::master && !decided(b).is_trained) continue;
      // A split master is read as a whole one.
      const bool is_half = s == Segment::master && shape_.split_master;
      if (const int64_t its_bytes = segment_bytes(shape_, b, s); its_bytes > 0)
        n_bytes += round_up(its_bytes, kTensorAlignment_bytes) * (is_half ? 2 : 1) + kRun_bytes;
    }
    return n_bytes;
  }
  /** Room for every state where the shape allows it: a checkpoint then holds up the steps for as
   * long as the copy takes, whatever the disk does. No step waits for frozen weights. */
  void save_buffer() {
    constexpr int64_t kPage_bytes = 4096;  // the buffer starts on one, regions need not
    int64_t states_bytes = 0, frozen_bytes = 0;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      states_bytes += saved_states_bytes(b);
      if (!shape_.weights_are_master()) frozen_bytes += shape_.n_frozen(b) * kMaster_bytes;
    }
    const int64_t wanted = states_bytes + std::min(frozen_bytes, kSaveBuffer_bytes_least);
    save_buffer_bytes_ = round_up(std::min(wanted, shape_.save_buffer_bytes_max) + kPage_bytes,
                                  kTensorAlignment_bytes);
    out_.save_buffer = add(Tag::staging, Place::host, {"checkpoint buffer"}, save_buffer_bytes_);
  }

  const StepShape& shape_;
  bool has_weight_slots_ = false, has_grad_slots_ = false;
  bool is_checkpoint_copied_ = false;  ///< some of a checkpoint's bytes lie on the device
  int64_t save_buffer_bytes_ = 0;
  Layout out_;
};

}  // namespace

namespace {

constexpr std::array kLasting = {Segment::weights, Segment::master, Segment::state_0,
                                 Segment::state_1};

/** How the elements of a segment are kept. */
struct Storage {
  DType type{};
  int64_t width_bytes = 0;     ///< of an element
  bool has_exponents = false;  ///< one byte a block of elements, behind them
};

Storage storage_of(const StepShape& shape, int block, Segment segment) {
  const auto plain = [](DType type) { return Storage{type, static_cast<int64_t>(size_of(type))}; };
  switch (segment) {
    case Segment::weights:
      return plain(shape.compute);
    case Segment::grads:
      return plain(shape.grads_fp32(block) ? DType::f32 : shape.compute);
    case Segment::master:
      return {DType::f32, shape.split_master ? 2 : 4};
    default:
      break;
  }
  switch (simd::spec_of(shape.optim).type) {
    case simd::StateType::fp32:
      return plain(DType::f32);
    case simd::StateType::bf16:
      return plain(DType::bf16);
    case simd::StateType::block8:
      return {DType::u8, 1, true};
  }
  return {};
}

}  // namespace

std::span<const Segment> lasting_segments(simd::Optim optim) {
  return std::span(kLasting).first(2 + static_cast<size_t>(simd::spec_of(optim).n_states()));
}

std::span<const Segment> saved_segments(simd::Optim optim) {
  return lasting_segments(optim).subspan(1);
}

std::span<const Segment> state_segments(simd::Optim optim) {
  return saved_segments(optim).subspan(1);
}

std::string_view name_of(Segment segment, simd::Optim optim) {
  return name_of(static_cast<Tag>(segment), optim);
}
static_assert(static_cast<int>(Tag::master) == static_cast<int>(Segment::master) &&
              static_cast<int>(Tag::state_1) == static_cast<int>(Segment::state_1));

DType segment_dtype(const StepShape& shape, int block, Segment segment) {
  return storage_of(shape, block, segment).type;
}

ByteRange element_bytes(
    const StepShape& shape, int block, Segment segment, int64_t begin, int64_t n) {
  const int64_t width = storage_of(shape, block, segment).width_bytes;
  if (shape.cuts_blocks()) {
    const ElementRange own = shape.own_part(block);
    const int64_t n_trained = shape.blocks[block].n_trained_elements;
    begin -= begin >= n_trained ? n_trained - own.n : own.begin;
  }
  return {begin * width, n * width};
}

int64_t bytes_of_elements(const StepShape& shape, int block, Segment segment, int64_t n) {
  return n * storage_of(shape, block, segment).width_bytes;
}

int64_t segment_elements(const StepShape& shape, int block, Segment segment) {
  const int64_t n_own = shape.own_part(block).n, n_frozen = shape.n_frozen(block);
  switch (segment) {
    case Segment::weights:
      return n_own + n_frozen;
    case Segment::grads:
      return shape.n_part_grad_elements(block, shape.ranks.rank);
    case Segment::master:
      return n_own + (shape.weights_are_master() ? n_frozen : 0);
    default:
      return n_own;
  }
}

bool is_in_segment(const StepShape& shape, Segment segment, const TensorExtent& tensor) {
  return tensor.trainable || segment == Segment::weights ||
         (segment == Segment::master && shape.weights_are_master());
}

int64_t segment_bytes(const StepShape& shape, int block, Segment segment) {
  const int64_t n_elements = segment_elements(shape, block, segment);
  return bytes_of_elements(shape, block, segment, n_elements) +
         (storage_of(shape, block, segment).has_exponents ? simd::state_blocks(n_elements) : 0);
}

void for_rank_parts(const StepShape& shape,
                    int block,
                    Segment segment,
                    const ByteRange& range,
                    const std::function<void(const RankPart&)>& each) {
  const int64_t width = storage_of(shape, block, segment).width_bytes;
  const int64_t n_trained = shape.blocks[block].n_trained_elements;
  // A stretch of units that one rank has, which begins there at `offset` bytes.
  const auto part_in = [&](int rank, int64_t begin, int64_t n, int64_t offset, bool is_copy) {
    const int64_t from = std::max(begin, range.offset),
                  to = std::min(begin + n, range.offset + range.n_bytes);
    if (from < to)
      each({.rank = rank,
            .offset = offset + from - begin,
            .done = from - range.offset,
            .n_bytes = to - from,
            .is_copy = is_copy});
  };
  for (int rank = 0; rank < shape.ranks.world; ++rank) {
    const ElementRange part = shape.part(block, rank);
    part_in(rank, part.begin * width, part.n * width, 0, false);
    // Behind what is trained: exponents of states, or frozen weights.
    const int64_t behind = n_trained * width, own = part.n * width;
    if (storage_of(shape, block, segment).has_exponents) {
      const int64_t first = part.begin / simd::kStateBlock;
      part_in(rank, behind + first, simd::state_blocks(part.n), own, false);
    } else if (shape.runs(block, rank)) {
      part_in(rank, behind, (shape.blocks[block].n_elements - n_trained) * width, own,
              /*is_copy=*/shape.ranks.replica_of(rank) > 0);
    }
  }
}

int64_t exponents_offset(const StepShape& shape, int block) {
  return shape.own_part(block).n;  // a code takes a byte
}

ByteRange exponent_bytes(const StepShape& shape, int block, const TensorExtent& tensor) {
  const ElementRange own = shape.own_part(block);
  const ElementRange there = common({tensor.offset, tensor.n_elements}, own);
  return {exponents_offset(shape, block) + (there.begin - own.begin) / simd::kStateBlock,
          simd::state_blocks(there.n)};
}

int n_sum_slots(const StepShape& shape, int block) {
  return shape.has_peers() ? static_cast<int>(simd::norm_chunks(shape.own_part(block).n)) : 1;
}

int sum_slot(const StepShape& shape, int block) {
  if (!shape.has_peers()) return block;
  int slot = 0;
  for (int b = 0; b < block; ++b)
    slot += n_sum_slots(shape, b);
  return slot;
}

int64_t Layout::bytes_of(Tag tag, Place place) const {
  int64_t bytes = 0;
  for (const Region& r : regions)
    if (r.tag == tag && r.place == place) bytes += r.n_bytes;
  return bytes;
}

Layout make_layout(const StepShape& shape) {
  LayoutMaker<true> maker(shape);
  maker.go();
  return maker.take();
}

int64_t pinned_end(const Layout& layout, int64_t pinned_bytes_max) {
  const ByteRange& copied = layout.copied_on_host;
  const int64_t begin = copied.offset / kPinnedPage_bytes * kPinnedPage_bytes,
                end = copied.offset + copied.n_bytes;
  if (round_up(end, kPinnedPage_bytes) - begin <= pinned_bytes_max) return end;
  const int64_t room = pinned_bytes_max - ring_size(pinned_bytes_max).n_bytes;
  return std::clamp(begin + room / kPinnedPage_bytes * kPinnedPage_bytes, copied.offset, end);
}

bool needs_ring(const Layout& layout, int64_t pinned_bytes_max) {
  const ByteRange& copied = layout.copied_on_host;
  return pinned_end(layout, pinned_bytes_max) < copied.offset + copied.n_bytes;
}

int64_t ring_bytes_of(const Layout& layout, const Action& action, int64_t pinned_end) {
  int64_t n_bytes = 0;
  if (!is_move(action.verb)) return n_bytes;
  for (const std::vector<Bytes>* all : {&action.reads, &action.writes})
    for (const Bytes& bytes : *all) {
      const Region& region = layout.region(bytes.region);
      if (region.place != Place::host || bytes.role == Role::dead) continue;
      const int64_t begin = region.offset + bytes.offset;
      n_bytes += std::max<int64_t>(0, begin + bytes.n_bytes - std::max(begin, pinned_end));
    }
  return n_bytes;
}

LayoutBytes layout_bytes_of_rank(const StepShape& shape) {
  LayoutMaker<false> maker(shape);
  maker.go();
  return maker.bytes();
}

LayoutBytes layout_bytes(const StepShape& shape) {
  if (!shape.deals_blocks()) return layout_bytes_of_rank(shape);
  LayoutBytes most;
  StepShape its = shape;
  for (int stage = 0; stage < its.ranks.n_stages; ++stage) {
    its.ranks.rank = its.ranks.rank_at(stage, 0);  // its parts are the largest, or nearly
    const LayoutBytes bytes = layout_bytes_of_rank(its);
    for (Place place : {Place::device, Place::host, Place::nvme})
      most.n_bytes[place] = std::max(most.n_bytes[place], bytes.n_bytes[place]);
    most.save_buffer_bytes = std::max(most.save_buffer_bytes, bytes.save_buffer_bytes);
  }
  return most;
}

}  // namespace ferry
