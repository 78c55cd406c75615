#include "offload/step/layout.h"

#include <algorithm>

#include "src/base/bytes.h"

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
    segments();
    slots();
    saved();
    layer_inputs();
    out_.scratch = add(Tag::scratch, Place::device, {"scratch"}, shape_.scratch_bytes);
    out_.library = add(Tag::library, Place::device, {"library"}, shape_.library_bytes);
    out_.generation = add(Tag::cache, Place::device, {"generation"}, shape_.generation_bytes);
    add_each(out_.batches, shape_.n_micro_max, Tag::batch, Place::device, "batch",
             shape_.batch_bytes);
    add_each(out_.batches_on_host, shape_.n_micro_max, Tag::batch, Place::host, "batch",
             shape_.batch_bytes);
    if (shape_.trains) save_buffer();
    out_.step_sums = add(Tag::batch, Place::device, {"step sums"}, step_sums_bytes(shape_));
    out_.step_sums_on_host = add(Tag::batch, Place::host, {"step sums"}, step_sums_bytes(shape_));
    if (shape_.trains)
      out_.arrived_sums = add(Tag::batch, Place::host, {"arrived sums"},
                              shape_.n_blocks() * static_cast<int64_t>(sizeof(double)));
  }
  Layout take() { return std::move(out_); }
  LayoutBytes bytes() const { return {out_.n_bytes, save_buffer_bytes_}; }

 private:
  RegionId add(Tag tag, Place place, const Name& name, int64_t n_bytes) {
    if (n_bytes <= 0) return -1;
    int64_t& end = out_.n_bytes[static_cast<size_t>(place)];
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
    if (n_bytes > 0)
      out_.n_bytes[static_cast<size_t>(place)] += n * round_up(n_bytes, kTensorAlignment_bytes);
  }

  const BlockShape& block(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }

  void segments() {
    if constexpr (kLists) out_.segments.resize(shape_.blocks.size());
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      std::array<RegionId, kSegments> ids;
      ids.fill(-1);
      const auto place_segment = [&](Segment s, Tag tag) {
        const int64_t n_bytes = segment_bytes(shape_, b, s);
        ids[static_cast<size_t>(s)] =
            add(tag, block(b).place, {block(b).name, name_of(tag)}, n_bytes);
        if (n_bytes > 0) add_to_buffer(s, n_bytes);
      };
      if (shape_.trains) place_segment(Segment::master, Tag::master);
      if (shape_.trains && shape_.weights_are_master())
        ids[static_cast<size_t>(Segment::weights)] = ids[static_cast<size_t>(Segment::master)];
      else
        place_segment(Segment::weights, Tag::weights);
      if (shape_.has_grads(b)) place_segment(Segment::grads, Tag::grads);
      if (shape_.is_trained(b)) {
        place_segment(Segment::adam_m, Tag::adam_m);
        place_segment(Segment::adam_v, Tag::adam_v);
      }
      if (shape_.trains && !shape_.weights_are_master())
        frozen_bytes_ += (block(b).n_elements - block(b).n_trained_elements) * kMaster_bytes;
      if constexpr (kLists) out_.segments[static_cast<size_t>(b)] = ids;
    }
  }

  void slots() {
    const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
    int64_t weights = 0, grads_host = 0, temp = 0;
    bool staged = false;
    const bool vertical = shape_.order == AccumulationOrder::vertical;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      const int64_t n = shape_.n_grad_elements(b);
      const bool host = block(b).place == Place::host;
      if (host) weights = std::max(weights, shape_.n_slot_elements(b) * compute_bytes);
      if (host && shape_.has_grads(b)) {
        grads_host =
            std::max(grads_host, n * (vertical && shape_.grads_fp32(b) ? 4 : compute_bytes));
        staged |= shape_.sums_on_host(b);
      }
      if (shape_.sums_on_gpu(b)) temp = std::max(temp, n * compute_bytes);
    }
    if (weights > 0)
      add_each(out_.weight_slots, shape_.n_weight_slots, Tag::slots, Place::device, "weight slot",
               weights);
    if (!shape_.trains) return;
    if (grads_host > 0)
      add_each(out_.grad_slots, shape_.n_grad_slots, Tag::slots, Place::device, "gradient slot",
               grads_host);
    if (staged)
      add_each(out_.grad_staging, shape_.n_grad_slots, Tag::staging, Place::host,
               "gradient staging", grads_host);
    out_.grad_temp = add(Tag::slots, Place::device, {"gradient of one micro-batch"}, temp);
  }

  void saved() {
    const auto n = static_cast<size_t>(shape_.n_blocks() * shape_.n_live());
    if constexpr (kLists) {
      out_.saved.assign(n, -1);
      out_.saved_on_host.assign(n, -1);
    }
    int64_t recomputed = 0, on_host = 0;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      // Blocks without a backward pass write their activations to one region, and nobody reads
      // them.
      if (b < first_backward_ || block(b).activations == Activations::recompute) {
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

  void layer_inputs() {
    // Two regions hold in turn the outputs that no backward pass reads.
    const int n_passing = std::min(first_backward_, shape_.n_blocks()) - 1;
    bool any_in_slots = false;
    for (int b = 0; b < shape_.n_blocks() - 1; ++b) {
      const bool in_slots = shape_.layer_input_in_slots(b), on_host = shape_.layer_input_on_host(b);
      const bool in_turn = !in_slots && b >= 2 && b < n_passing;
      any_in_slots |= in_slots;
      if constexpr (!kLists) {
        count(in_slots || in_turn ? 0 : shape_.n_live(), Place::device, shape_.layer_input_bytes);
        count(on_host ? shape_.n_live() : 0, Place::host, shape_.layer_input_bytes);
        continue;
      }
      for (int live = 0; live < shape_.n_live(); ++live) {
        const auto output_in = [&](Place place) {
          return add(Tag::saved, place, {"output of", block(b).name}, shape_.layer_input_bytes);
        };
        out_.layer_inputs.push_back(
            in_slots  ? -1
            : in_turn ? out_.layer_inputs[static_cast<size_t>((b - 2) * shape_.n_live() + live)]
                      : output_in(Place::device));
        out_.layer_inputs_on_host.push_back(on_host ? output_in(Place::host) : -1);
      }
    }
    if (any_in_slots)
      add_each(out_.layer_input_slots, shape_.n_layer_input_slots, Tag::saved, Place::device,
               "layer-input slot", shape_.layer_input_bytes);
    if (!shape_.trains) return;
    add_each(out_.layer_input_grads, 2 * shape_.n_live(), Tag::scratch, Place::device,
             "gradient between blocks", shape_.layer_input_bytes);
  }

  /** Adds the bytes that a checkpoint takes of a segment. */
  void add_to_buffer(Segment s, int64_t n_bytes) {
    // Each segment of a block is a run in a file, which begins and ends within a slot of the
    // buffer.
    constexpr int64_t kRun_bytes = 512 << 10;
    if (s != Segment::master && s != Segment::adam_m && s != Segment::adam_v) return;
    // A split master is read as a whole one.
    const bool is_half = s == Segment::master && shape_.split_master;
    saved_states_bytes_ +=
        round_up(n_bytes, kTensorAlignment_bytes) * (is_half ? 2 : 1) + kRun_bytes;
  }
  /** Room for every state where the shape allows it: a checkpoint then holds up the steps for as
   * long as the copy takes, whatever the disk does. No step waits for frozen weights. */
  void save_buffer() {
    constexpr int64_t kPage_bytes = 4096;  // the buffer starts on one, regions need not
    const int64_t wanted = saved_states_bytes_ + std::min(frozen_bytes_, kSaveBuffer_bytes_least);
    save_buffer_bytes_ = round_up(std::min(wanted, shape_.save_buffer_bytes_max) + kPage_bytes,
                                  kTensorAlignment_bytes);
    out_.save_buffer = add(Tag::staging, Place::host, {"checkpoint buffer"}, save_buffer_bytes_);
  }

  const StepShape& shape_;
  const int first_backward_ = shape_.first_backward();
  int64_t saved_states_bytes_ = 0, frozen_bytes_ = 0, save_buffer_bytes_ = 0;
  Layout out_;
};

}  // namespace

std::string_view name_of(Segment segment) {
  constexpr std::array<std::string_view, kSegments> kNames = {"weights", "grads", "master",
                                                              "adam_m", "adam_v"};
  return kNames.at(static_cast<size_t>(segment));
}

DType segment_dtype(const StepShape& shape, int block, Segment segment) {
  switch (segment) {
    case Segment::weights:
      return shape.compute;
    case Segment::grads:
      return shape.grads_fp32(block) ? DType::f32 : shape.compute;
    case Segment::master:
      return DType::f32;
    case Segment::adam_m:
    case Segment::adam_v:
      break;
  }
  switch (shape.states) {
    case simd::StateType::fp32:
      return DType::f32;
    case simd::StateType::bf16:
      return DType::bf16;
    case simd::StateType::block8:
      return DType::u8;
  }
  return DType::f32;
}

namespace {

bool has_exponents(const StepShape& shape, Segment segment) {
  return shape.states == simd::StateType::block8 &&
         (segment == Segment::adam_m || segment == Segment::adam_v);
}

}  // namespace

ByteRange element_bytes(
    const StepShape& shape, int block, Segment segment, int64_t begin, int64_t n) {
  const bool is_half = segment == Segment::master && shape.split_master;
  const auto width =
      is_half ? 2 : static_cast<int64_t>(size_of(segment_dtype(shape, block, segment)));
  return {begin * width, n * width};
}

int64_t segment_elements(const StepShape& shape, int block, Segment segment) {
  const BlockShape& b = shape.blocks[static_cast<size_t>(block)];
  switch (segment) {
    case Segment::weights:
      return b.n_elements;
    case Segment::grads:
      return shape.n_grad_elements(block);
    case Segment::master:
      return shape.weights_are_master() ? b.n_elements : b.n_trained_elements;
    case Segment::adam_m:
    case Segment::adam_v:
      break;
  }
  return b.n_trained_elements;
}

bool is_in_segment(const StepShape& shape, Segment segment, const TensorExtent& tensor) {
  return tensor.trainable || segment == Segment::weights ||
         (segment == Segment::master && shape.weights_are_master());
}

int64_t segment_bytes(const StepShape& shape, int block, Segment segment) {
  const int64_t n_elements = segment_elements(shape, block, segment);
  return element_bytes(shape, block, segment, 0, n_elements).n_bytes +
         (has_exponents(shape, segment) ? simd::state_blocks(n_elements) : 0);
}

ByteRange exponent_bytes(const StepShape& shape, int block, const TensorExtent& tensor) {
  return {shape.blocks[static_cast<size_t>(block)].n_trained_elements +
              tensor.offset / simd::kStateBlock,
          simd::state_blocks(tensor.n_elements)};
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

LayoutBytes layout_bytes(const StepShape& shape) {
  LayoutMaker<false> maker(shape);
  maker.go();
  return maker.bytes();
}

}  // namespace ferry
